"""Ordinary questions beside their bars: python benchmarks/questions.py [SECTION …].

Every module of benchmarks/sections is a section: `lines()` yields Line, measured in this run. The exit status is 1
where a bar is missed.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # sections share the helpers of this folder, whether run alone or by python -m benchmarks


def main(names: list[str] | None = None) -> int:
    missed = 0
    for name in names or sorted(module.name for module in pkgutil.iter_modules([str(HERE / "sections")])):
        print(f"\n{name}", flush=True)
        for line in importlib.import_module(f"sections.{name}").lines():
            missed += not line.holds
            print(f"  {line}", flush=True)
    print(f"\n{missed} bars missed" if missed else "\nevery bar holds")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
