"""What does not fit into memory lies in a private folder that is removed, also after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sfumato.network.database import close_idle
from sfumato.network.spill import SpillFolder, remove_abandoned
from sfumato.network.tables import TableRoom

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks and modes are those of POSIX systems")


@pytest.fixture(autouse=True)
def own_place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path)
    close_idle()  # its folder is elsewhere
    yield
    close_idle()


def test_the_engine_spills_into_a_private_folder_and_nowhere_else(tmp_path):
    with TableRoom({"p": {"id": ["a"]}}, ["p"]) as room:
        (place,) = room.run("SELECT current_setting('temp_directory')")[0]
        assert Path(place).parent == tmp_path / "temporary"
        assert Path(place).stat().st_mode & 0o777 == 0o700
        room.connection.execute("SET threads = 1")
        room.connection.execute("SET memory_limit = '60MB'")
        room.run("CREATE TEMP TABLE big AS SELECT range AS x, hash(range)::VARCHAR AS y FROM range(1500000) ORDER BY y")
        assert any(path.stat().st_size > 1_000_000 for path in Path(place).iterdir())
        assert not (tmp_path / ".tmp").exists()
    assert not Path(place).exists() or [path.name for path in Path(place).iterdir()] == ["in-use"]
    close_idle()
    assert not Path(place).exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["temporary"]


def test_a_killed_process_leaves_nothing_after_the_next_start(tmp_path):
    child = "import os, signal\nfrom sfumato.network.spill import SpillFolder\nfolder = SpillFolder()\n"
    child += "(folder.path / 'rows').write_text('SECRET')\nprint(folder.path, flush=True)\n"
    child += "os.kill(os.getpid(), signal.SIGKILL)\n"
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    left = Path(done.stdout.strip())
    assert (left / "rows").exists()
    living = SpillFolder()
    assert not left.exists()
    remove_abandoned()
    assert living.path.exists()  # of a process that lives
    living.close()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_room_that_cannot_be_opened_leaves_nothing(tmp_path):
    with pytest.raises(Exception, match="was not handed in"):
        TableRoom({}, ["p"])
    assert list((tmp_path / "temporary").iterdir()) == []
