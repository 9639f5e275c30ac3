"""The privacy language: a study file that says what must stay private, from whom, and what has to be published.

`load` reads, checks and hands over a Spec; `Spec.ground` runs its clauses on logical facts. No data is read here.
"""

from sfumato.lang.derivations import Grounding
from sfumato.lang.load import examine, load
from sfumato.lang.problem import Problem
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, ListTerm, Number, Position, Term, Text, Variable, show

__all__ = [
    "Compound",
    "Grounding",
    "ListTerm",
    "Number",
    "Position",
    "Problem",
    "Spec",
    "Term",
    "Text",
    "Variable",
    "examine",
    "load",
    "show",
]
