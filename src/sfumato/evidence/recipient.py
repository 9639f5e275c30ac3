"""README.txt: how recipients use noisy results correctly.

In:   a Plan, the folder of its release.
Out:  plain text: what is in the folder, the law of the noise, intervals, and the mistakes that bias conclusions.
Not here: the promise in three registers (evidence/explain.py), the page (evidence/report.py).

Like the report it shows no result: one folder may hold numbers for several observers.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from sfumato.evidence.drawn import Drawn, deviation_of, drawn_for
from sfumato.evidence.fairness import fairness_records, fairness_words
from sfumato.evidence.figures import told_of
from sfumato.evidence.files import published_files, write_whole
from sfumato.evidence.odds import odds_sentence
from sfumato.evidence.report_facts import state_of
from sfumato.evidence.took_part import as_drawn, took_part
from sfumato.plan.draw_law import LAWS, draw_law
from sfumato.plan.plan import Plan, Planned, Seen
from sfumato.plan.sentences import exact_sentences, history_sentences, part_sentences

__all__ = ["noise_law", "recipient_text", "write_recipient_readme"]

_WIDTH = 92
_ACTS = {
    "table": "Every cell carries its own noise; the .noise.json file has the law of each column. Hand its covariance "
    "to an estimator that knows the noise. Categories were answered at random: correct their counts.",
    "synthetic": "The rows are invented: no row stands for anybody. They were made from noisy counts of columns and "
    "pairs of columns. Good for trying out programs, teaching, models, and tables of one or two columns; not for "
    "single people, rare combinations of three and more columns, or tests of significance: no interval can be read "
    "off the rows alone. For answers with an error take the .measured.parquet file: the noisy counts themselves, "
    "unbiased, each with its standard error, all errors independent. The .marginals.html file compares the two.",
    "classifier": "The model was trained with noise; its weights are plain numbers in the .json file. Predictions are "
    "yours to make: they reveal no more. Its score on the private rows was not published.",
    "regression": "The coefficients were computed with noise and are plain numbers in the .json file. Their standard "
    "errors must include it: do not take those of an ordinary regression.",
    "outliers": "The region was fitted with noise and is in the .json file. Who lies outside of it was not published.",
    "quantile": "The numbers themselves were drawn, from a public list and all together, the likelier the nearer they "
    "are to the quantiles of the rows; rows between neighbouring numbers were counted with Laplace noise. The interval "
    "holds the quantile of the rows in at least 95 of 100 draws; the standard error is its width over 4.24.",
    "groups": "Values that few people have are left out by chance: that a value is missing here does not say that "
    "nobody has it. Counts of named values carry noise on whole numbers; small groups are named when their noise was "
    "large, which the interval knows and the value does not.",
    "channel": "Every value was replaced by one of a public list, with public probabilities in the channel's file. "
    "Single values mean little; estimate with TailoredNoise.read(FILE).estimate(values, use).",
}
_CORRELATED = (
    "Published = exact + noise, put back into its public range. The noise is Gaussian with the standard error above, "
    "correlated between the numbers of one individual (plan.json has the strategy it is read off) and independent "
    "between individuals."
)


def write_recipient_readme(plan: Plan, folder: str | Path) -> Path:
    """Write README.txt into the folder of a release."""
    return write_whole(Path(folder) / "README.txt", recipient_text(plan, Path(folder)))


def recipient_text(plan: Plan, folder: Path | None = None) -> str:
    """The text for a plan, with the files of its release if there is one."""
    files = published_files(folder) if folder else {}
    lines = _head(plan, folder)
    drawn = as_drawn(plan, folder)
    for planned in drawn.publications:
        lines += _publication(drawn, planned, files.get((planned.name, planned.observer), ()), folder)
    lines += _title("Using these numbers correctly") + _rules(plan)
    lines += _title("In Python") + _code(plan, files)
    lines += _title("What was promised to the people in the data")
    for promise in plan.promises:
        who = " and ".join(promise.observers)
        lines += _wrapped(f"Towards {who}: {promise.asked}. {odds_sentence(promise.asked, promise.kept)}")
    for sentence in (*history_sentences(plan), *part_sentences(plan), *exact_sentences(plan)):
        lines += _wrapped(sentence)
    lines += _wrapped(
        "Whatever you compute from these numbers keeps the promise. Putting them together with another observer's "
        "numbers is covered where a line above names you both."
    )
    lines += _title("Checking")
    lines += _wrapped(
        "sfumato verify certificate.json recomputes the promise without the data. sfumato trace results/FILE says "
        "which variables a result came from and which requirement paid for it. report.html tells the rest. "
        f"Plan: {plan.hash}"
    )
    return "\n".join(lines) + "\n"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False)


def _bullet(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False)


def _title(text: str) -> list[str]:
    return ["", text, "-" * len(text)]


def _head(plan: Plan, folder: Path | None) -> list[str]:
    title = f"{plan.study}: how to use these results"
    lines = [title, "=" * len(title)]
    state = state_of(folder)
    if state == "dry run":
        lines += ["", *_wrapped("A DRY RUN: invented people and repeatable noise. Nothing here is about anybody.")]
    elif state == "incomplete":
        lines += ["", *_wrapped("A certificate is missing or does not hold: do not use these results.")]
    if centres := took_part(folder):
        lines += ["", *_wrapped(centres)]
    lines += [""]
    lines += _wrapped(
        "Random noise was added to everything here that the data say about anybody, before it was published, as much "
        "as the promise at the end needs and no more. The noise is part of every number; its law is public, so that "
        "you can account for it."
    )
    if any(planned.listed for planned in plan.publications):
        lines += _wrapped("No noise is in identifiers. Files with a row for each individual show who is in the data.")
    return lines


def _publication(plan: Plan, planned: Planned, files: tuple[str, ...], folder: Path | None) -> list[str]:
    lines = _title(f"{planned.name}, for {planned.observer}")
    if files:
        lines += _wrapped(f"Files: {', '.join(files)}", "")
    lines += _wrapped(f"How: {planned.strategy}" + (f" on {', '.join(planned.cut)}" if planned.cut else "") + ".")
    laws: dict[str, list[Seen]] = {}
    for seen in planned.seen:
        laws.setdefault(noise_law(plan, planned, seen), []).append(seen)
    told = told_of(planned, folder)
    for law, members in laws.items():
        nodes = {seen.node for seen in members}
        for one in told:
            if one.node in nodes:
                lines += _bullet(one.sentence)
        lines += _wrapped(law, "  ")
    for sentence in planned.about:
        lines += _wrapped(sentence, "  ")
    for name, record in fairness_records(folder).items() if folder else ():
        if name in files:
            lines += _wrapped(fairness_words(record), "  ")
    return lines


def noise_law(plan: Plan, planned: Planned, seen: Seen) -> str:
    """What was added to one line of a publication, in a sentence that an estimator can be built on."""
    visible = drawn_for(plan, planned.observer)
    for act in plan.acts:
        if (act.name, act.observer) == (planned.name, planned.observer):
            return f"{_ACTS.get(act.kind, '')} It keeps {act.guarantee}.".strip()
    visible = tuple(one for one in visible if not one.publication)
    own = [act for act in visible if seen.node in act.nodes]
    behind = [act for act in visible if set(act.nodes) & set(planned.cut)]
    if not own and not behind:
        return "Exact: everybody may know it, and nothing was added." if seen.error == 0 else _generic(planned)
    if own and own[0].law not in LAWS:
        return _generic(planned)
    if own and any(act.deviation is None for act in own):
        return _CORRELATED
    if own and own[0].group is None:
        return _sum_law(plan, own, seen)
    if own and set(planned.cut) <= {one.node for one in planned.seen}:
        scale = deviation_of(own)
        return (
            f"Published = exact + noise, put back into its public range. The noise is {_kind(own)} with standard "
            f"deviation {scale:.4g}, independent from row to row: classical measurement error."
        )
    return (
        "Noise was added to what it is computed from, and the value was computed from the noisy versions. Its error is "
        "therefore neither exactly Gaussian nor independent of the value: the standard error is to first order, the "
        "interval the range of the formula over what the noise may have been."
    )


def _generic(planned: Planned) -> str:
    return f"{planned.reason.strip().rstrip('.')}." if planned.reason.strip() else "See plan.json for its noise."


def _sum_law(plan: Plan, draws: list[Drawn], seen: Seen) -> str:
    return plan.questions[seen.node].law_words(_kind(draws), deviation_of(draws) or 0.0, seen.standard_error)


def _kind(draws: list[Drawn]) -> str:
    law = draw_law(draws[0].law)
    return law.title if len(draws) == 1 or law.closed else f"a weighted mean of {len(draws)} {law.title} variables"


def _rules(plan: Plan) -> list[str]:
    lines: list[str] = []
    for text in (
        "Report a number with its interval: low and high beside each value hold the truth in 95 of 100 cases; an end "
        "that is null in a .json file is unbounded. They are for the noise alone, about these people; add the sampling "
        "error of your own question: total variance = noise variance + sampling variance.",
        "A difference of two numbers has the variance s1² + s2², a sum of k numbers the sum of all their variances. "
        "Where a line above says that errors are correlated this is not so; the standard error of a sum or difference "
        "is then at most the sum of theirs. A total of many noisy parts is worse than the same total published once.",
        "Do not set negative counts to zero, round, or drop cells that look odd before you add up or compare: the "
        "noise has mean 0, and whoever cuts one side of it off makes everything too large.",
        "Do not divide by a noisy number whose interval comes near 0.",
        "Noise in an explanatory variable flattens its slope (attenuation). Use an estimator that knows the noise: "
        "NoiseAwareLinearRegression, NoiseAwareLogisticRegression, NoiseAwareSVC in sfumato.release.",
        "Versions made for different observers share noise. Averaging them does not help.",
        "A test of significance needs the noise in its standard error too; otherwise it finds effects that are noise.",
    ):
        lines += _bullet(text)
    drawn = {act.law for act in drawn_for(plan)}
    for law in LAWS.values():
        lines += _bullet(law.caution) if law.name in drawn and law.caution else []
    return lines


def _code(plan: Plan, files: dict[tuple[str, str], tuple[str, ...]]) -> list[str]:
    """Lines to start from: aggregates come as JSON too, a file of individuals as Parquet alone."""
    other = {(act.name, act.observer): act.kind for act in plan.acts}
    statistics = [names for key, names in files.items() if names and key not in other]
    aggregates = [names[0] for names in statistics if any(name.endswith(".json") for name in names)]
    individuals = [names[0] for names in statistics if names[0] not in aggregates]
    numbers = ("table", "synthetic", "channel", "quantile", "groups")
    models = [files[key][-1] for key, kind in other.items() if kind not in numbers and key in files]
    lines = ["import pyarrow.parquet as pq"]
    if aggregates or not files:
        lines += [
            f'for row in pq.read_table("{aggregates[0] if aggregates else "results/FILE.parquet"}").to_pylist():',
            '    print(row["node"], row["part"], row["value"], "95 %:", row["low"], "to", row["high"])',
        ]
    if individuals and any(act.group is not None for act in drawn_for(plan)):
        lines += [
            "from sfumato.release import NoiseAwareLinearRegression",
            f'table = pq.read_table("{individuals[0]}").to_pandas()   # one row per individual',
            "# X: noisy columns used as features, s1, s2, …: their standard errors above, y: what is explained",
            "model = NoiseAwareLinearRegression([[s1**2, 0.0], [0.0, s2**2]]).fit(X, y)",
        ]
    if models:
        lines += [
            "from sfumato.learn.model_document import load_model",
            f'model = load_model("{models[0]}")   # plain numbers, no pickle; model.predict(table)',
        ]
    return ["    " + line for line in lines]
