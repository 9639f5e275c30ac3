"""The picture: zones as bands, boxes apart, edges to the right, the same file twice."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from network.studies import ONCOLOGY, oncology_tables
from sfumato.cli.app import app
from sfumato.errors import InputError
from sfumato.lang import load
from sfumato.network import Network
from sfumato.network.draw import _columns, _panel
from sfumato.network.layout import lay_out

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def network():
    return Network.from_spec(load(ONCOLOGY), oncology_tables(10))


def test_svg_says_who_sees_what(network, tmp_path):
    path = network.draw(tmp_path / "graph.svg")
    text = path.read_text(encoding="utf-8")
    for word in (
        "sensitive (S)",
        "between (Z)",
        "observed (O)",
        "expectedSurvivalLength(P)",
        "[0, 110]",
        "doctor sees",
    ):
        assert word in text
    again = network.draw(tmp_path / "again.svg").read_text(encoding="utf-8")
    assert text == again


def test_png(network, tmp_path):
    assert network.draw(tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="svg"):
        network.draw(tmp_path / "graph.doc")


def test_boxes_do_not_overlap_and_text_fits(network):
    from matplotlib.textpath import TextPath

    for zones in network.zones:
        layout, boxes, _, _ = _panel(network, zones)
        assert len(set(layout.places.values())) == len(layout.places)
        columns = _columns(layout, boxes)
        for (_, right), (left, _) in pairwise(columns):
            assert right < left
        for name, box in boxes.items():
            left, right = columns[layout.places[name][0]]
            for text, size in ((box.title, 8.5), (box.detail, 7)):
                assert TextPath((0, 0), text, size=size).get_extents().width / 72 < right - left


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
def test_every_edge_points_right_and_has_its_own_lane(pairs):
    zones = {f"n{k}": "SZO"[k // 4] for k in range(12)}
    edges = sorted({(f"n{a}", f"n{b}") for a, b in pairs if a < b})
    layout = lay_out(zones, edges)
    for (start, end), route in layout.routes.items():
        columns = [column for column, _ in route]
        assert columns == list(range(layout.places[start][0], layout.places[end][0] + 1))
    taken = [spot for route in layout.routes.values() for spot in route[1:-1]]
    assert not set(taken) & set(layout.places.values())
    assert len(taken) == len(set(taken))


def test_command(tmp_path):
    out = tmp_path / "graph.svg"
    result = CliRunner().invoke(app, ["draw", str(EXAMPLES / "oncology" / "study.pl"), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert out.exists()
    assert "2 requirement(s)" in result.output


def test_a_study_cannot_make_draw_read_outside_of_its_folder(tmp_path):
    study = tmp_path / "study.pl"
    text = "source(t, '../other.csv'). public(t). column(t, id, thing(T)). random(x(T)) :- thing(T).\n"
    study.write_text(text + "depends(x(T), [], 1) :- thing(T).\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["draw", str(study), "-o", str(tmp_path / "g.svg")])
    assert isinstance(result.exception, InputError)
    assert "outside" in str(result.exception)
