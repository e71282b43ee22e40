"""The key `system.recorded`: results that another system gave, and where in a row they stand."""

from __future__ import annotations

from pydantic import Field

from rag_assets.contracts.validation import FileModel, NonEmpty


class RecordedMap(FileModel):
    """Which column (CSV, TSV) or dotted path (JSON Lines) holds what.

    A place that the config does not name is taken when the file has it under its own name here.

    Attributes:
        case_id: the case that a row answers; the only one that must be there.
        state: valid, empty, denied, error or timeout; without it, the ids and the error tell.
        doc_ids: the retrieved documents, best first: a list of ids or of objects as in `Passage`,
            or text with `|` between ids.
        answer: the answer; in JSON Lines any value.
        citations: cited ids: a list, or text with `|` between ids.
        context_ids: the passages that the model was given: a list of ids or of objects as in
            `ContextItem`, or text with `|` between ids.
        abstained: true or false.
        error: why there is no result.
    """

    case_id: NonEmpty = "case_id"
    state: NonEmpty = "state"
    doc_ids: NonEmpty = "doc_ids"
    answer: NonEmpty = "answer"
    citations: NonEmpty = "citations"
    context_ids: NonEmpty = "context_ids"
    abstained: NonEmpty = "abstained"
    error: NonEmpty = "error"


class RecordedSettings(FileModel):
    """`system.recorded`: results in a file.

    Attributes:
        path: a .jsonl, .csv or .tsv file, relative to the config file.
    """

    path: NonEmpty = Field(description="the file of results: .jsonl, .csv or .tsv")
    map: RecordedMap = RecordedMap()
