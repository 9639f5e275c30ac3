"""Run all benchmarks, or those named: `python -m benchmarks sampler release`."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import traceback

import benchmarks


def main() -> int:
    known = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))
    failed = []
    sys.path.insert(0, benchmarks.__path__[0])  # scripts share helpers whether run alone or from here
    for name in sys.argv[1:] or known:
        try:
            module = importlib.import_module(f"benchmarks.{name}")
            if not hasattr(module, "main"):
                continue
            print(f"\n=== {name} ===", flush=True)
            module.main()
        except Exception:
            traceback.print_exc()
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
