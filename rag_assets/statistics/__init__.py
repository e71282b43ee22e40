"""Intervals, slice tests, planning and display: plain numbers in, immutable values out.

Every method is valid at every sample size, counts missing cases at their worst, and raises
`ValueError` with the name of the argument that is wrong. Nothing here loads numpy or scipy
before a bound is computed.
"""

from __future__ import annotations

from rag_assets.statistics.display import (
    RATE,
    RATE_DIFFERENCE,
    Format,
    score_difference_format,
    score_format,
)
from rag_assets.statistics.interval import Interval
from rag_assets.statistics.means import bounded_mean
from rag_assets.statistics.paired import exact_paired, paired_mixture
from rag_assets.statistics.planning import (
    Predicted,
    Sizes,
    cases_for_floor,
    predicted_cases_for_floor,
)
from rag_assets.statistics.planning_means import cases_for_mean
from rag_assets.statistics.planning_pairs import chance_of_margin, pairs_for_margin
from rag_assets.statistics.quantiles import order_statistic_quantile
from rag_assets.statistics.rates import clopper_pearson
from rag_assets.statistics.slices import (
    benjamini_yekutieli,
    fisher_slice,
    smallest_attainable_p,
)

__all__ = [
    "RATE",
    "RATE_DIFFERENCE",
    "Format",
    "Interval",
    "Predicted",
    "Sizes",
    "benjamini_yekutieli",
    "bounded_mean",
    "cases_for_floor",
    "cases_for_mean",
    "chance_of_margin",
    "clopper_pearson",
    "exact_paired",
    "fisher_slice",
    "order_statistic_quantile",
    "paired_mixture",
    "pairs_for_margin",
    "predicted_cases_for_floor",
    "score_difference_format",
    "score_format",
    "smallest_attainable_p",
]
