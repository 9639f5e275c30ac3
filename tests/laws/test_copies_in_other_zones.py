"""A copy opens no second account on a machine in another time zone, nor where an older version told the ledger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.run.fingerprint import fingerprint

CHILD = """
import json, sys
from pathlib import Path
from sfumato.run.fingerprint import fingerprints
print(json.dumps({path: fingerprints(Path(path)) for path in sys.argv[1:]}))
"""
ZONES = ["UTC", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"]


def told(zone: str, paths: list[Path]) -> dict[str, list[str]]:
    """What a machine in this zone takes the tables for."""
    here = {**os.environ, "TZ": zone, "PYTHONPATH": str(Path(sfumato.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", CHILD, *map(str, paths)], env=here, capture_output=True, check=True)
    return json.loads(done.stdout)


def copies(seed: int, folder: Path) -> list[Path]:
    """Moments as Parquet has them and as texts with and without a zone; some do not exist where clocks are put on."""
    chance = np.random.default_rng(seed)
    days = pd.to_datetime(chance.integers(15 * 10**8, 17 * 10**8, 30), unit="s").as_unit("us")
    days = days.append(pd.to_datetime(["2021-03-14 02:30:00", "2021-11-07 01:30:00", "2011-12-30 10:00:00"]))
    frame = pd.DataFrame({"id": np.arange(len(days)) + 7, "seen": days})
    frame.to_parquet(folder / f"{seed}.parquet")
    frame.assign(seen=frame["seen"].dt.tz_localize("UTC")).to_parquet(folder / f"{seed} zoned.parquet")
    frame.to_csv(folder / f"{seed}.csv", index=False)
    frame.assign(seen=frame["seen"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")).to_csv(folder / f"{seed} iso.csv", index=False)
    return sorted(folder.glob(f"{seed}*"))


@pytest.mark.by_day(1)
@pytest.mark.parametrize("zone", ZONES)
def test_a_copy_is_the_same_data_in_every_zone(zone: str, tmp_path: Path):
    paths = copies(1, tmp_path)
    assert len({fingerprint(path) for path in paths} | {one[0] for one in told(zone, paths).values()}) == 1


@pytest.mark.slow
def test_what_an_older_version_took_for_the_same_data_is_told_beside(tmp_path: Path):
    """It read moments without a zone in the machine's own."""
    (path,) = copies(2, tmp_path)[-1:]
    zoned = pd.read_parquet(path)
    zoned["seen"] = zoned["seen"].dt.tz_localize(None)
    zoned.to_parquet(path)
    at_home, in_universal = told("Asia/Kathmandu", [path])[str(path)], told("UTC", [path])[str(path)]
    older = zoned.assign(seen=zoned["seen"].dt.tz_localize("Asia/Kathmandu").dt.tz_convert("UTC").dt.tz_localize(None))
    older.to_parquet(path)
    assert set(at_home) == {*in_universal, *told("UTC", [path])[str(path)]}
    assert at_home[0] == in_universal[0]
