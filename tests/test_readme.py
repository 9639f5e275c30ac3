"""What the README shows runs as shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_every_python_example_runs(tmp_path):
    examples = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert examples
    for example in examples:
        run = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr


def test_every_command_named_exists():
    for command in re.findall(r"`sfumato (\w+)", README):
        run = subprocess.run(
            [sys.executable, "-m", "sfumato", command, "--help"], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, command
