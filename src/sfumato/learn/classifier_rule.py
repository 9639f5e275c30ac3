"""Which form a private classifier takes, with which features and how tightly it is held: a public rule.

In:   the number of records, columns and classes, ε, δ, by how much one record moves sums.
Out:  ClassifierPlan, made without any value of the data.
Not here: the forms themselves (learn/kernel_moment.py, learn/kernel_steps.py, learn/svc.py), who fits them
(learn/classifier.py).

Noisy gradients (learn/kernel_steps.py) are best where there is some signal. Sums of products of features answer with
one release and lose little where noise is long; training all classes together by one solution passes over very many
records a few times only. They cross where a class has some 35 and some 3,000 records for each standard deviation of the
noise in its sums, and at 100,000 records.

The numbers of sums and of training were fixed on handwritten digits, vowels, Adult (relationship from six columns) and
tables made by scikit-learn's make_classification and make_blobs and by four generators of correlated bands, skewed
columns, a tree of thresholds and cells around 40 centres: 350 to 30,000 rows, 6 to 64 columns, 4 to 11 classes, ε = 1
and 3. Satellite images, segments and the shuttle (benchmarks/learn_classes.py) were looked at once after that. That one
of them missed its bar is why steps were tried; their numbers (learn/kernel_steps.py) and where forms cross were fixed
on generators and on the tables above, without looking at the three again. What training stands on, how its strength
grows with noise (learn/calibration.py), had been fixed on satellite images and the shuttle before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sfumato.learn.features import even_components
from sfumato.learn.kernel_rule import class_signal, components_for, plan_kernel

__all__ = ["ClassifierPlan", "Form", "plan_classifier"]

Form = Literal["sums", "stepped", "trained"]

#: Records of a class for each standard deviation of noise from which on steps win, and from which on they only take
#: longer than training.
_ENOUGH, _PLENTY = 35.0, 3000.0
#: Features whose products are added up.
_PRODUCTS = 300
#: Up to so many records steps are taken, with so many features: they pass over all records again and again.
_MOST_FOR_STEPS, _FOR_STEPS = 100_000, 400
#: Features of training, and the records up to which it takes twice as many: its time grows with their square.
_FEATURES, _FEW_RECORDS = 200, 10_000
#: Several classes are held half as tightly as linear models of 200 features; how many features there are says nothing
#: about scores, so the growth of the automatic strength with their number, (√features)^(4/3), is taken back.
_LOOSER, _GROWTH = 0.5, 2 / 3


@dataclass(frozen=True)
class ClassifierPlan:
    """`form` "sums": released sums of products; "stepped" and "trained": all classes together on `n_components`
    features, by noisy gradients or by one noisy solution.

    `looser` multiplies the automatic strength of training. `pays`: how far rows lie apart is worth its price;
    `gamma` is what stands for it where it is not.
    """

    form: Form
    n_components: int
    looser: float
    pays: bool
    gamma: float


def plan_classifier(
    records: int | None,
    columns: int,
    classes: int,
    epsilon: float,
    delta: float = 0.0,
    moved: float = 2.0,
    n_components: int | Literal["auto"] = "auto",
) -> ClassifierPlan:
    """The form for rows in a box of width 2; `records=None` where their number is private.

    Without δ, or without a number of records, it is sums: other noise then grows with the features.

    >>> plan_classifier(700, 10, 11, 1.0, 1e-6).form, plan_classifier(5000, 36, 6, 1.0, 1e-6).form
    ('sums', 'stepped')
    >>> plan_classifier(5000, 36, 6, 1.0, 1e-6).n_components, plan_classifier(50_000, 9, 7, 1.0).form
    (400, 'sums')
    """
    rule = plan_kernel(records, columns, classes, epsilon, delta, moved)
    given = None if n_components == "auto" else even_components(n_components)
    signal = class_signal(records, classes, epsilon, delta, moved) if delta and records is not None else 0.0
    if records is None or signal < _ENOUGH:
        features = given or (_PRODUCTS if delta else components_for("mean", delta))
        return ClassifierPlan("sums", features, 1.0, rule.pays, rule.gamma)
    if signal < _PLENTY and records <= _MOST_FOR_STEPS:
        return ClassifierPlan("stepped", given or _FOR_STEPS, 1.0, rule.pays, rule.gamma)
    features = given or (2 * _FEATURES if records <= _FEW_RECORDS else _FEATURES)
    looser = _LOOSER * (_FEATURES / features) ** _GROWTH if classes > 2 else 1.0
    return ClassifierPlan("trained", features, looser, rule.pays, rule.gamma)
