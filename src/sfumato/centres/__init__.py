"""Several institutions: a sum of all without anybody seeing the parts.

In:   a Round, each centre's own rows.
Out:  one noisy sum with a certificate; or a clean failure that charges nobody.
Reading order: round.py (what is agreed), statistic_round.py and study_round.py (on what), statistics.py (what is
summed), design.py (with or without masks), participant.py and aggregator.py (the protocol), conductor.py (its steps),
memory.py, network.py, processes.py and flower.py (ways to run them).
Each name is imported when it is first used: a centre that joins a study's round needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.lazy import lazily

if TYPE_CHECKING:
    from sfumato.centres.clipped_sums import ClippedSums
    from sfumato.centres.design import Design, Weights, choose_design, noisy_sharing, secure_aggregation
    from sfumato.centres.gradients import GradientSums
    from sfumato.centres.linear import LinearFit, fit_linear
    from sfumato.centres.memory import aggregate_in_memory, new_centres
    from sfumato.centres.newton import LinearClassifier, Series
    from sfumato.centres.outcome import Aggregate
    from sfumato.centres.plan import plan_round
    from sfumato.centres.processes import aggregate_locally
    from sfumato.centres.round import Centre, Requirement, Round
    from sfumato.centres.series import coordinate_series, learn_in_memory, take_part_in_series
    from sfumato.centres.statistic_round import StatisticRound
    from sfumato.centres.statistics import Count, Histogram, Means, SecondMoments, Statistic
    from sfumato.centres.study_round import StudyRound

__all__ = [
    "Aggregate",
    "Centre",
    "ClippedSums",
    "Count",
    "Design",
    "GradientSums",
    "Histogram",
    "LinearClassifier",
    "LinearFit",
    "Means",
    "Requirement",
    "Round",
    "SecondMoments",
    "Series",
    "Statistic",
    "StatisticRound",
    "StudyRound",
    "Weights",
    "aggregate_in_memory",
    "aggregate_locally",
    "choose_design",
    "coordinate_series",
    "fit_linear",
    "learn_in_memory",
    "new_centres",
    "noisy_sharing",
    "plan_round",
    "secure_aggregation",
    "take_part_in_series",
]

#: Where each name lives.
_HOME = {
    "Aggregate": "outcome",
    "Centre": "round",
    "ClippedSums": "clipped_sums",
    "Count": "statistics",
    "Design": "design",
    "GradientSums": "gradients",
    "Histogram": "statistics",
    "LinearClassifier": "newton",
    "LinearFit": "linear",
    "Means": "statistics",
    "Requirement": "round",
    "Round": "round",
    "SecondMoments": "statistics",
    "Series": "newton",
    "Statistic": "statistics",
    "StatisticRound": "statistic_round",
    "StudyRound": "study_round",
    "Weights": "design",
    "aggregate_in_memory": "memory",
    "aggregate_locally": "processes",
    "choose_design": "design",
    "coordinate_series": "series",
    "fit_linear": "linear",
    "learn_in_memory": "series",
    "new_centres": "memory",
    "noisy_sharing": "design",
    "plan_round": "plan",
    "secure_aggregation": "design",
    "take_part_in_series": "series",
}

__getattr__ = lazily(__name__, _HOME)
