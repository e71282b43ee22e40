"""Dagster's event log as a projection of the store: which events a run has to write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from rag_assets.assets.events import instance_id, last_record, newest_events, write_events
from rag_assets.assets.keys import CORPUS, INDEX, Suite
from rag_assets.assets.metadata import SHOWN_OF, case_metadata, short_metadata
from rag_assets.assets.serialization import AssetEvent
from rag_assets.assets.storage import plans_by_itself
from rag_assets.contracts.canonical import digest_text
from rag_assets.evaluation.restricted import redactor_of
from rag_assets.evaluation.session import Session
from rag_assets.evaluation.words import ANSWERING, PARENTS, PASSAGE_STAGES, Stage
from rag_assets.store import Head

UNPARTITIONED = ""
# In the place of a case: the head that names the newest event of an asset. No case has such an id.
_NEWEST = "..."
_DATA_VERSION = "dagster/data_version"
_INPUT_VERSION = "dagster/input_data_version/"
_INPUT_POINTER = "dagster/input_event_pointer/"


class Projection:
    """Writes an event for each (asset, case) whose content or provenance differs from its head.

    It follows the store: what a stage has committed is projected at once, so that the UI shows
    how far a run is.

    Args:
        session: the run.
        instance: where events go; heads are kept for each instance.
        suite: its names in Dagster.
        code_versions: stage → code version of its asset.
        from_ui: Dagster asked for certain partitions or assets: each of them gets an event,
            changed or not, and is shown in progress while it is executed.
    """

    def __init__(
        self,
        session: Session,
        instance: dg.DagsterInstance,
        suite: Suite,
        code_versions: Mapping[Stage, str],
        *,
        from_ui: bool,
    ) -> None:
        self._session = session
        self._instance_id = instance_id(instance)
        self._suite = suite
        self._code_versions = code_versions
        self._from_ui = from_ui
        self._plans = plans_by_itself(instance)
        self._is_small = len(session.cases) <= session.project.config.dagster.rich_metadata_cases
        stages = (*PARENTS, INDEX, CORPUS)
        self._names = {one: suite.key(one).to_user_string() for one in stages}
        self._cases = {case.id: case for case in session.cases}
        self._stages: tuple[Stage, ...] = ()
        self._last: Stage | None = None
        self._pointer = ""
        self._context: dg.OpExecutionContext
        self._planned: set[tuple[Stage, str]] = set()
        self._new_heads: list[Head] = []
        with session.store.reading() as reader:
            heads = reader.heads(self._instance_id, list(self._names.values()))
        self._heads = _believable(
            heads, newest_events(instance, [suite.key(one) for one in PARENTS])
        )

    def enter(self, context: dg.OpExecutionContext, stages: Sequence[Stage]) -> None:
        """Stages begin whose events shall be written."""
        self._context, self._stages, self._planned = context, tuple(stages), set()
        if "retrieval" in stages:
            self._observe(INDEX, self._index_version)
        if "judgments" in stages:
            self._observe(CORPUS, self._corpus_version)
        self._last, self._pointer = stages[0], last_record(context.instance)

    def starting(self, stage: Stage, case_ids: Sequence[str]) -> None:
        """Cases of a stage are about to be executed."""
        if not self._from_ui:
            return
        for one in ANSWERING if stage == "execution" else (stage,):
            if one in self._stages:
                self._plan(one, case_ids)

    def committed(self, stage: Stage, case_ids: Sequence[str]) -> None:
        """Results of a stage are in the store."""
        if stage not in self._stages:
            return
        if stage != self._last:
            # The events of its parents are in the log by now.
            self._last, self._pointer = stage, last_record(self._context.instance)
        failed: list[str] = []
        due: list[tuple[str, dict[str, str]]] = []
        for case_id in case_ids:
            content = self._session.content(stage, case_id)
            if content is None and self._session.failure(stage, case_id) is not None:
                failed.append(case_id)
                continue
            inputs = self._inputs(stage, case_id)
            version = _short(content)
            due += [(case_id, tags) for tags in self._due(stage, case_id, version, inputs)]
        self._plan(stage, failed)
        key = self._suite.key(stage)
        metadata = self._metadata(stage, [case_id for case_id, _ in due])
        events = [AssetEvent(key, case_id, tags, metadata[case_id]) for case_id, tags in due]
        write_events(self._context, events, in_run_log=self._is_small)
        self._take_heads(key)

    def project_whole(
        self,
        stage: Stage,
        data_version: str,
        inputs: Mapping[str, str],
        metadata: Mapping[str, Any],
    ) -> None:
        """Write the event of an unpartitioned asset, when it is due.

        Args:
            stage: metrics or gate.
            data_version: digest of its content.
            inputs: parent stage → digest of what was read of it.
            metadata: what the UI shows.
        """
        key = self._suite.key(stage)
        due = self._due(stage, UNPARTITIONED, data_version, inputs)
        write_events(self._context, [AssetEvent(key, None, tags, metadata) for tags in due])
        self._take_heads(key)

    def _plan(self, stage: Stage, case_ids: Sequence[str]) -> None:
        """Say that cases are in progress; they count as failed when the run fails without them."""
        new = [case_id for case_id in case_ids if (stage, case_id) not in self._planned]
        self._planned.update((stage, case_id) for case_id in new)
        self._forget(stage, new)
        if self._plans:
            key = self._suite.key(stage)
            events = [AssetEvent(key, case_id, planned=True) for case_id in new]
            write_events(self._context, events, in_run_log=False)

    def _observe(self, source: str, version: str | None) -> None:
        """Tell Dagster which version of a source is read, when it is another one."""
        key = self._suite.key(source)
        newest = self._context.instance.fetch_observations(key, limit=1).records
        seen = newest[0].asset_observation if newest else None
        if version is None or (seen is not None and seen.data_version == version):
            return
        self._context.log_event(dg.AssetObservation(key, tags={_DATA_VERSION: version}))

    def _metadata(self, stage: Stage, case_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Case id → what the UI shows of it; a few values only in a large suite."""
        session = self._session
        results = session.results[stage]
        if not self._is_small:
            return {
                case_id: short_metadata(session, stage, self._cases[case_id], results[case_id])
                for case_id in case_ids
            }
        shown = SHOWN_OF.get(stage, ())
        if session.project.corpus is not None and shown:
            # What of an answer may be shown depends on the passages that it was made of.
            shown = (*dict.fromkeys((*shown, *PASSAGE_STAGES)),)
        digests = {
            case_id: {
                one: found
                for one in shown
                if one in session.results
                and (found := session.results[one][case_id].digest) is not None
            }
            for case_id in case_ids
        }
        payloads = session.payloads_of(one for found in digests.values() for one in found.values())
        metadata: dict[str, dict[str, Any]] = {}
        for case_id in case_ids:
            case = self._cases[case_id]
            contents = {one: json.loads(payloads[of]) for one, of in digests[case_id].items()}
            passages = [contents[one] for one in PASSAGE_STAGES if one in contents]
            metadata[case_id] = case_metadata(
                session,
                stage,
                case,
                results[case_id],
                contents,
                session.outcomes_of(case_id) if stage == "judgments" else {},
                redactor_of(session, case, passages),
            )
        return metadata

    def _due(
        self, stage: Stage, case_id: str, data_version: str, inputs: Mapping[str, str]
    ) -> Iterable[dict[str, str]]:
        """The tags of the event of one asset partition; nothing when nothing has changed."""
        name, code_version = self._name(stage), self._code_versions[stage]
        parts = [code_version, data_version, *(f"{one}={inputs[one]}" for one in inputs)]
        fingerprint = digest_text("\n".join(parts))
        head = self._heads.get((name, case_id))
        if head is not None and head.fingerprint == fingerprint and not self._from_ui:
            return
        self._new_heads.append(Head(self._instance_id, name, case_id, fingerprint, data_version))
        tags = {
            _DATA_VERSION: data_version,
            "dagster/code_version": code_version,
            "dagster/data_version_is_user_provided": "true",
        }
        for parent, version in inputs.items():
            tags[_INPUT_VERSION + self._name(parent)] = version
            tags[_INPUT_POINTER + self._name(parent)] = self._pointer
        yield tags

    def _take_heads(self, key: dg.AssetKey) -> None:
        """The events of the new heads are written: a head never speaks of an event that is not."""
        if not self._new_heads:
            return
        for name, newest in newest_events(self._context.instance, [key]).items():
            self._new_heads.append(Head(self._instance_id, name, _NEWEST, str(newest), ""))
        for head in self._new_heads:
            self._heads[head.asset, head.case_id] = head
            self._session.head_changes[head.instance, head.asset, head.case_id] = head
        self._new_heads.clear()

    def _forget(self, stage: Stage, case_ids: Sequence[str]) -> None:
        """Their next success is emitted again, whatever it is: it turns the partition green.

        This is on record before the partition turns red, so that a kill between the two cannot
        leave it so.
        """
        name = self._name(stage)
        known = [one for one in case_ids if self._heads.pop((name, one), None) is not None]
        if known:
            session = self._session
            session.head_changes.update({(self._instance_id, name, one): None for one in known})
            with session.store.writing() as writer:
                session.take_pending(writer)

    def _inputs(self, stage: Stage, case_id: str) -> dict[str, str]:
        inputs: dict[str, str] = {
            parent: _short(self._session.content(parent, case_id)) for parent in PARENTS[stage]
        }
        if stage == "retrieval" and not self._session.project.is_whole:
            inputs[INDEX] = str(self._index_version)
        if stage == "judgments" and self._corpus_version is not None:
            inputs[CORPUS] = self._corpus_version
        return inputs

    @property
    def _index_version(self) -> str | None:
        project = self._session.project
        return None if project.is_whole else project.system.index_version

    @property
    def _corpus_version(self) -> str | None:
        project = self._session.project
        return project.corpus.digest if project.corpus and project.reads_corpus else None

    def _name(self, stage: str) -> str:
        return self._names[stage]


def _believable(
    heads: Mapping[tuple[str, str], Head], newest: Mapping[str, int | None]
) -> dict[tuple[str, str], Head]:
    """The heads of those assets whose newest event is the one that was written last.

    It is another one when a run was killed between its events and their heads, or when somebody
    wiped an asset or reported an event of it. All cases of such an asset are emitted again.
    """
    return {
        (name, case_id): head
        for (name, case_id), head in heads.items()
        if (last := heads.get((name, _NEWEST))) and last.fingerprint == str(newest.get(name))
    }


def _short(digest: str | None) -> str:
    """A digest as a data version: long enough to tell contents apart, and short in every event.

    Of a part that was not recorded there is an event as well: its partition is up to date.
    """
    return "absent" if digest is None else digest[:24]
