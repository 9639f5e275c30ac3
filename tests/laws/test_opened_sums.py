"""A sum that was opened is paid for at every centre: killed at whatever step, its release is there or comes again.

The process that writes it is killed before each of its steps on the disk. Then the same call is made again: what was
complete is published as it was opened, at no cost, and what was not is made from another round.
"""

from __future__ import annotations

import os

import pytest

from run.centre_studies import dealt, own_cells, study
from sfumato.centres import aggregate_in_memory, new_centres
from sfumato.errors import InputError, UnfinishedError
from sfumato.evidence.verify_plan import verify_folder
from sfumato.plan.make import make_plan
from sfumato.run import staging
from sfumato.run.manifest import hashes
from sfumato.run.over_centres import left_complete, published_over_centres, study_round
from sfumato.run.staging import MARKER, Staging

PLAN = make_plan(study("mean(m, age(P), patient(P)). publish(m, m, openness(public)).\n"), sizes={"people": 60})


@pytest.fixture(scope="module")
def found():
    tables = dealt(60)
    members, keys = new_centres(tables)
    agreed = study_round(PLAN, members).fresh()
    return aggregate_in_memory(agreed, own_cells(PLAN, agreed, tables), keys)


def hidden_in(folder):
    return next((path for path in folder.iterdir() if path.name.startswith(".")), None)


def killed_at(step, found, out):
    """Whether the process ended by itself, because it has fewer steps than that."""
    child = os.fork()
    if child == 0:
        left = [step]

        def counted(action):
            def done(*given, **named):
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
                return action(*given, **named)

            return done

        staging._sync = counted(staging._sync)
        for name in ("replace", "rename", "fsync"):
            setattr(os, name, counted(getattr(os, name)))
        try:
            published_over_centres(PLAN, found, {}, out)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_what_was_opened_is_never_lost(every, found, tmp_path):
    over, published = False, 0
    for step in range(every - 1, 400, every):
        folder = tmp_path / str(step)
        folder.mkdir()
        over = killed_at(step, found, folder / "out")
        hidden = hidden_in(folder)
        marker = None if hidden is None else hidden / MARKER
        complete = marker is not None and marker.exists() and '"complete"' in marker.read_text()
        before = hashes(hidden) if complete else None
        shown = (folder / "out" / "plan.json").exists()
        release = None if shown else left_complete(PLAN, folder / "out")
        assert (release is not None) == complete
        if complete:
            published += 1
            kept = {name: digest for name, digest in before.items() if MARKER not in name}
            assert hashes(folder / "out") == kept
            assert all(one.ok for one in verify_folder(folder / "out"))
        if over:
            break
    assert over
    assert published


def test_a_place_that_is_taken_meanwhile_is_named_with_a_way_that_loses_nothing(found, tmp_path, monkeypatch):
    out, show = tmp_path / "out", Staging._show

    def taken(self):
        out.mkdir()
        (out / "mine").touch()
        show(self)

    monkeypatch.setattr(Staging, "_show", taken)
    with pytest.raises(UnfinishedError, match="run the same command again"):
        published_over_centres(PLAN, found, {}, out)
    monkeypatch.undo()
    with pytest.raises(InputError):
        left_complete(PLAN, out)
    (out / "mine").unlink()
    with pytest.raises(InputError, match="complete result"):
        published_over_centres(PLAN, found, {}, out)
    assert left_complete(PLAN, out) is not None
