"""Values of ranking measures from a library that shares nothing with this project."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

Ranking = Sequence[str]


def values_of(
    grades: Mapping[str, Mapping[str, int]],
    rankings: Mapping[str, Ranking],
    measures: Sequence[str],
) -> dict[str, dict[str, float]]:
    """Measures of rankings, from `ir_measures`.

    Args:
        grades: topic → document → grade.
        rankings: topic → documents, best first.
        measures: their names, such as nDCG@10.

    Returns:
        Measure → topic → value, for the topics that have a ranking.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ir_measures

    parsed = {name: ir_measures.parse_measure(name) for name in measures}
    judged = [
        ir_measures.Qrel(topic, doc_id, grade)
        for topic in rankings
        for doc_id, grade in grades[topic].items()
    ]
    # Decreasing scores without ties, so that the order is the one that was recorded.
    run = [
        ir_measures.ScoredDoc(topic, doc_id, float(-place))
        for topic, ranking in rankings.items()
        for place, doc_id in enumerate(ranking)
    ]
    found: dict[str, dict[str, float]] = {name: {} for name in measures}
    names = {measure: name for name, measure in parsed.items()}
    for one in ir_measures.iter_calc(list(parsed.values()), judged, run):
        found[names[one.measure]][one.query_id] = one.value
    return found


def mean(values: Mapping[str, float]) -> float:
    """The mean over topics."""
    return sum(values.values()) / len(values)
