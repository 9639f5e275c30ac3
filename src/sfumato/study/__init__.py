"""Studies in Python: what to publish, for whom, and how exactly, without a word of the study language.

In:   calls.
Out:  Study, StudyPlan, StudyRelease, Tidy.
Not here: the language itself (lang/), planning (plan/), running (run/).
"""

from sfumato.study.builder import Study
from sfumato.study.planned import StudyPlan
from sfumato.study.released import StudyRelease
from sfumato.study.tidy import Tidy

__all__ = ["Study", "StudyPlan", "StudyRelease", "Tidy"]
