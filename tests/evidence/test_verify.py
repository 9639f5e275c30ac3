"""Laws of the verifier: true certificates pass, every edit that matters is found and named, and it stands alone."""

from __future__ import annotations

import ast
import hashlib
import importlib
import itertools
import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    ApproxDP,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    NoGuarantee,
    NormGammaEvent,
    PureDP,
    RandomizedResponseEvent,
    Repeated,
    SelectionEvent,
    compose,
    gaussian_scale,
)
from sfumato.errors import VerificationError
from sfumato.evidence import Certificate, verify

# The function hides the module of the same name in the package.
verifier = importlib.import_module("sfumato.evidence.verify")
losses = importlib.import_module("sfumato.evidence.losses")
plain_sums = importlib.import_module("sfumato.evidence.plain_sums")
laws = importlib.import_module("sfumato.evidence.laws")
dependences = importlib.import_module("sfumato.evidence.dependences")

PROOFS = ("exponential", "gaussian", "laplace", "norm_gamma", "permute_and_flip", "randomized_response")
NOISE = GaussianEvent(1.0, 2.0, grid=0.01, dimension=4, adjacency=REPLACE_ONE)
COUNT = LaplaceEvent(1.0, 2.0, grid=0.001, adjacency=REPLACE_ONE)
COUNTS = LaplaceEvent(1.0, 3.0, grid=0.001, dimension=3, adjacency=REPLACE_ONE)
ANSWERS = RandomizedResponseEvent(3, 7, 2, adjacency=REPLACE_ONE)
CHOICE = SelectionEvent("exponential", 1.0, 5.0, grid=0.01, adjacency=REPLACE_ONE)
VECTOR = NormGammaEvent(1.0, 4.0, grid=0.1, dimension=9, adjacency=REPLACE_ONE)


def issue(*events, **options) -> Certificate:
    proofs = sorted(losses.required_proofs(event.to_dict() for event in events))
    return Certificate.issue(**{"subject": "mean age", "events": events, "proofs": proofs, **options})


CERTIFICATES = {
    "exact": issue(NOISE, Repeated(NOISE, 3), plan={"strategy": "output noise"}),
    "pure": issue(COUNT),
    "mixture": issue(NOISE, Repeated(ANSWERS, 5), notes=["labels were published as they are"]),
    "several": issue(COUNT, CHOICE),
    "approximate": issue(NOISE, guarantee=ApproxDP(3.0, 1e-6)),
    "infinite": issue(VECTOR, CHOICE, guarantee=ApproxDP(0.727, 1e-3)),
    "concentrated": issue(NOISE, guarantee=ZCDP(0.2)),
    "gaussian": issue(VECTOR, guarantee=GaussianDP(1.0)),
    "none": issue(NOISE, guarantee=NoGuarantee("every margin is published exactly"), proofs=()),
    "nothing": issue(guarantee=NoGuarantee("as published")),
    "experiment": issue(NOISE, publishable=False),
}
each_certificate = pytest.mark.parametrize("certificate", CERTIFICATES.values(), ids=CERTIFICATES.keys())


def tree_of(certificate) -> dict:
    return json.loads(certificate.to_json())


def forged(tree: dict) -> dict:
    """The tree with the digest a forger would write."""
    rest = {name: item for name, item in tree.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return {**rest, "digest": hashlib.sha256(text.encode()).hexdigest()}


def leaves(tree, here=()):
    if isinstance(tree, dict | list):
        for key, item in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(item, (*here, key))
    else:
        yield here, tree


def replaced(tree, path, value):
    copy = json.loads(json.dumps(tree))
    branch = copy
    for key in path[:-1]:
        branch = branch[key]
    branch[path[-1]] = value
    return copy


def edits(value):
    """The small changes a hand would make: one per cent, the other answer, another word."""
    match value:
        case bool():
            return [not value]
        case int():
            step = max(1, round(value / 100))
            return [value + step, value - step]
        case float():
            return [value * 1.01, value * 0.99] if value else [0.01]
        case str():
            return [value + "x", ""]
    return [0.5, "x"]


@each_certificate
@pytest.mark.by_day(8)
def test_a_true_certificate_passes(certificate, tmp_path):
    path = tmp_path / "certificate.json"
    certificate.write(path)
    for form in (certificate, certificate.to_json(), tree_of(certificate), path, str(path)):
        result = verify(form, strict=True)
        assert result
        assert result.ok
        assert result.failures == ()
        assert {"digest", "guarantee", "claims", "proofs"} <= {check.field.split(".")[0] for check in result.checks}


@each_certificate
@pytest.mark.by_day(2)
def test_any_edit_breaks_the_digest(certificate):
    tree = tree_of(certificate)
    for path, value in leaves(tree):
        found = verify(replaced(tree, path, edits(value)[0])).failures
        assert found[-1].field in ("digest", "schema_version"), path


# What an edit may also be called: one number out of several that belong together.
ALSO = {
    **{"events": {"composed"}, "guarantee": {"claims", "composed"}, "notes": {"publishable"}},
    "schema_version": {"files"},  # which the first version does not have
}


def matters(tree, path) -> bool:
    """Words about the publication cost nobody privacy, and neither does the number of answers on offer."""
    words = path[0] in ("created", "subject", "versions", "digest") or path[-1] == "categories"
    note = path[0] == "notes" and "random_state" not in tree["notes"][path[1]]
    unused = (
        tree["guarantee"]["kind"] == "NoGuarantee"
        and path[0] == "events"
        and path[-1] not in ("kind", "relation", "unit")
    )
    return not (words or note or unused)


@each_certificate
@pytest.mark.by_day(1)
def test_a_forger_who_edits_one_entry_is_found_and_the_entry_named(certificate):
    tree = tree_of(certificate)
    for path, value in leaves(tree):
        for edit in edits(value) if matters(tree, path) else []:
            found = {
                check.field.split(".")[0].split("[")[0] for check in verify(forged(replaced(tree, path, edit))).failures
            }
            assert found & ({path[0]} | ALSO.get(path[0], set())), (path, edit, found)
            assert "digest" not in found


def test_an_edit_of_words_is_called_digest():
    tree = replaced(tree_of(CERTIFICATES["exact"]), ("subject",), "median age")
    assert [check.field for check in verify(tree).failures] == ["digest"]
    with pytest.raises(VerificationError, match="digest") as raised:
        verify(tree, strict=True)
    assert raised.value.field == "digest"


def test_the_wrong_entry_is_named_before_the_digest():
    tree = tree_of(CERTIFICATES["mixture"])
    lower = replaced(tree, ("claims", "pairs", 1, "epsilon"), tree["claims"]["pairs"][1]["epsilon"] * 0.99)
    with pytest.raises(VerificationError) as raised:
        verify(lower, strict=True)
    assert raised.value.field == "claims.pairs[1].epsilon"


@pytest.mark.parametrize("place", ["adjacency", "guarantee", "composed", "events"])
def test_another_adjacency_is_named_where_it_stands(place):
    path = {"adjacency": (place,), "events": (place, 0, "adjacency")}.get(place, (place, "adjacency"))
    changed = forged(replaced(tree_of(CERTIFICATES["mixture"]), path, ADD_REMOVE.to_dict()))
    field = "adjacency" if place == "adjacency" else f"{place.replace('events', 'events[0]')}.adjacency"
    assert field in [check.field for check in verify(changed).failures]


def test_entries_that_are_missing_unknown_or_newer_are_named():
    tree = tree_of(CERTIFICATES["exact"])
    for name in tree:
        without = {key: item for key, item in tree.items() if key != name}
        assert name in [check.field for check in verify(without).failures]
    assert verify({**tree, "extra": 1}).failures[0].field == "extra"
    assert verify({**tree, "schema_version": 3, "extra": 1}).failures[0].field == "schema_version"


def test_an_unknown_kind_of_event_cannot_be_verified():
    tree = forged(replaced(tree_of(CERTIFICATES["exact"]), ("events", 0, "kind"), "QuantumEvent"))
    first = verify(tree).failures[0]
    assert first.field == "events[0]"
    assert "cannot be verified" in first.sentence


def test_a_missing_proof_is_named():
    tree = forged(replaced(tree_of(CERTIFICATES["several"]), ("proofs",), ["laplace"]))
    assert [check.field for check in verify(tree).failures] == ["proofs"]


def test_the_plan_is_compared_when_it_is_given():
    certificate = CERTIFICATES["exact"]
    assert verify(certificate, plan={"strategy": "output noise"}).ok
    assert [check.field for check in verify(certificate, plan={"strategy": "input noise"}).failures] == ["plan_hash"]


def test_more_repeats_than_can_be_checked_are_not_believed():
    tree = forged(replaced(tree_of(CERTIFICATES["mixture"]), ("events", 1, "count"), 10**12))
    assert not verify(tree).ok


# --- random certificates ---

scales = st.floats(1.0, 30.0)
grids = st.sampled_from([0.0, 0.001, 0.07])
events = st.one_of(
    st.builds(GaussianEvent, st.just(1.0), scales, grids, st.integers(1, 9), adjacency=st.just(REPLACE_ONE)),
    st.builds(LaplaceEvent, st.just(1.0), scales, grids, st.integers(1, 2), adjacency=st.just(REPLACE_ONE)),
    st.builds(NormGammaEvent, st.just(1.0), scales, grids, st.integers(1, 9), adjacency=st.just(REPLACE_ONE)),
    st.builds(SelectionEvent, st.just("permute-and-flip"), st.just(1.0), scales, grids, adjacency=st.just(REPLACE_ONE)),
    st.builds(
        RandomizedResponseEvent, st.just(4), st.integers(8, 40), st.integers(1, 7), adjacency=st.just(REPLACE_ONE)
    ),
)
acts = st.lists(events | st.builds(Repeated, events, st.integers(1, 40)), min_size=1, max_size=3)


@given(acts, st.data())
@settings(max_examples=12, deadline=None)
def test_random_certificates_pass_and_lowered_claims_do_not(given_events, data):
    certificate = issue(*given_events)
    tree = tree_of(certificate)
    assert verify(tree).failures == ()
    position = data.draw(st.integers(0, len(tree["claims"]["pairs"]) - 1))
    path = ("claims", "pairs", position, "epsilon")
    lowered = forged(replaced(tree, path, certificate.claims.pairs[position][1] * 0.99))
    assert [check.field for check in verify(lowered).failures] == [f"claims.pairs[{position}].epsilon"]


@given(st.floats(0.01, 20.0), st.floats(1e-10, 0.1))
@settings(max_examples=40, deadline=None)
def test_a_scale_calibrated_to_the_limit_passes(eps, delta):
    # Events and compositions round μ up by up to 1.1e-14, so a scale needs that much room above the exact limit.
    noise = GaussianEvent(1.0, gaussian_scale(eps, delta, 1.0) * (1 + 1e-13), adjacency=REPLACE_ONE)
    assert verify(issue(noise, guarantee=ApproxDP(eps, delta))).failures == ()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.just(1e300) | st.text(), st.lists), st.data())
@settings(max_examples=80, deadline=None)
def test_damage_never_raises(value, data):
    tree = tree_of(CERTIFICATES[data.draw(st.sampled_from(["exact", "pure", "mixture", "approximate", "none"]))])
    path, old = data.draw(st.sampled_from(list(leaves(tree))))
    assert verify(replaced(tree, path, value)).ok is (value == old and type(value) is type(old))
    assert verify(replaced(tree, path[:1], value)).ok is (tree[path[0]] == value)


@pytest.mark.parametrize(
    "garbage", ["", "{", "{}", "[]", "nowhere.json", "\0", 5, None, b"{}", {"a": math.nan}, {1: {}}, "{" * 10**5]
)
def test_garbage_is_not_verified(garbage):
    assert not verify(garbage)


# --- the second road ---


def law(*given_events):
    return laws.law_of(losses.event_parts(event.to_dict() for event in given_events))


@pytest.mark.parametrize("mu", [1e-5, 1e-3, 0.05, 0.0999, 0.1, 0.5, 1.0, 4.0, 20.0])
@pytest.mark.by_day(3)
def test_the_gaussian_profile_agrees_with_sixty_digits(mu):
    with mpmath.workdps(350):
        for z in (-20, -9.5, -8, -3, -0.5, 0, 0.5, 2, 4, 4.3, 6, 9, 15, 24, 36):
            epsilon = mu * (z + mu / 2)
            if abs(epsilon) > 700:
                continue
            exact_z = mpmath.mpf(epsilon) / mu - mpmath.mpf(mu) / 2
            exact = mpmath.ncdf(-exact_z) - mpmath.exp(epsilon) * mpmath.ncdf(-exact_z - mu)
            own = float(laws._gaussian_profile(mu, np.array([epsilon]))[0])
            # From μ = 0.1 on two terms are subtracted: exponents near z²/2 are rounded, and they cancel to μ/z of them.
            rounding = 2.0**-52 * abs(z) ** 3 / mu if mu >= 0.1 else 0.0
            assert abs(own / exact - 1) < 1e-11 + rounding, (mu, z)


def test_two_and_three_point_laws_agree_with_counting_every_outcome():
    acts_ = [ANSWERS, ANSWERS, CHOICE, VECTOR, COUNTS]
    epsilons = [act.guarantee().eps for act in acts_]
    # Of the answers other than the two true ones nothing is learned: their share of all weights.
    silent = (ANSWERS.categories - 2) * ANSWERS.move / (ANSWERS.keep + (ANSWERS.categories - 1) * ANSWERS.move)
    silences = [silent, silent, 0.0, 0.0, 0.0]

    def chance(sign: int, eps: float, silence: float) -> float:
        return silence if sign == 0 else (1 - silence) / (1 + math.exp(-sign * eps))

    own = law(*acts_)
    for epsilon in (0.0, 0.5, 1.5, 3.0, sum(epsilons) * 0.999):
        exact = 0.0
        for signs in itertools.product((1, 0, -1), repeat=len(acts_)):
            loss = sum(sign * eps for sign, eps in zip(signs, epsilons, strict=True))
            mass = math.prod(map(chance, signs, epsilons, silences))
            exact += mass * max(0.0, -math.expm1(epsilon - loss))
        assert exact * (1 - 1e-9) <= own.delta(epsilon) <= exact * (1 + 1e-6) + 1e-13


def test_the_laplace_law_is_worse_than_laplace_noise_by_a_hair():
    eps = COUNT.guarantee().eps
    alone = laws.law_of((losses.Part("laplace", losses.written(eps)),))
    for epsilon in np.linspace(0, eps, 7)[:-1]:
        exact = -math.expm1((epsilon - eps) / 2)
        assert exact * (1 - 1e-12) <= alone.delta(epsilon) <= exact * (1 + 1e-6)


@pytest.mark.parametrize(
    "given_events",
    [
        [NOISE, NOISE],
        [NOISE, COUNT],
        [Repeated(COUNT, 20)],
        [NOISE, Repeated(ANSWERS, 4)],
        [NOISE, COUNT, CHOICE, VECTOR],
        [Repeated(CHOICE, 10), Repeated(COUNT, 3)],
    ],
    ids=len,
)
@pytest.mark.by_day(3)
def test_both_roads_agree(given_events):
    core, own = compose(given_events), law(*given_events)
    for delta in (1e-1, 1e-3, 1e-5, 1e-8):
        epsilon = core.epsilon(delta)
        assert own.delta(epsilon * (1 + 1e-5)) <= delta
        assert core.delta(epsilon) <= own.delta(epsilon) * 1.01
        assert own.delta(epsilon * 0.99) > delta


def test_repeating_is_the_same_as_writing_again():
    for event in (NOISE, COUNT, ANSWERS, COUNTS):
        assert law(Repeated(event, 3)).delta(1.0) == pytest.approx(law(event, event, event).delta(1.0), rel=1e-12)


def test_a_guarantee_the_events_do_not_imply_is_found():
    tree = tree_of(CERTIFICATES["approximate"])
    for promise in (PureDP(9.0), GaussianDP(0.4), ZCDP(0.1), ApproxDP(2.0, 1e-6)):
        changed = forged({**tree, "guarantee": promise.under(REPLACE_ONE).to_dict()})
        assert "guarantee" in [check.field for check in verify(changed).failures]


def test_the_verifier_stands_alone():
    """It imports core and errors alone, and calls neither composition nor the views of a guarantee."""
    files = [one.__file__ for one in (verifier, losses, plain_sums, laws, dependences)]
    text = "".join(Path(str(name)).read_text(encoding="utf-8") for name in files)
    tree = ast.parse(text.replace("from __future__ import annotations", ""))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    inner = {name for name in imported if name.startswith("sfumato")}
    inner -= {f"sfumato.evidence.{name}" for name in ("laws", "losses", "plain_sums", "dependences")}
    core = {f"sfumato.core.{name}" for name in ("adjacency", "noise", "records", "threads")}
    assert inner == {*core, "sfumato.errors"}
    outer = {name.split(".")[0] for name in imported if not name.startswith("sfumato")}
    assert outer <= {*__import__("sys").stdlib_module_names, "numpy", "scipy"}
    called = {
        node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert not called & {"compose", "epsilon", "advantage", "rdp", "implies"}
