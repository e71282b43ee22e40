"""The part of the acceptance contract that no type of evaluator covers."""


def cites_evidence(citations, expected):
    """Whether an answer cites all documents that it needs."""
    needed = {label["doc_id"] for label in expected.get("relevant", ())}
    if not needed:
        return {"excluded": "nothing_to_cite"}
    return needed <= set(citations.ids)
