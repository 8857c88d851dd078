"""A program that is run with less search for garbage is run as if it were run by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from deadlines import HANG

from harness.inside import collecting

PROGRAM = """\
import atexit, gc, json, sys
import beside
atexit.register(lambda: print(gc.get_freeze_count()))
print(json.dumps([__name__, __file__, sys.argv, sys.path[0], gc.get_threshold()]))
sys.exit(3)
"""


def test_a_program_is_run_as_by_itself(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    (tmp_path / "beside.py").touch()
    command = [sys.executable, collecting.__file__, str(program), "-a", "b"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
    assert (done.returncode, done.stderr) == (3, "")
    facts, frozen = done.stdout.splitlines()
    expected = ["__main__", str(program), [str(program), "-a", "b"], str(tmp_path), [100_000, 20, 100]]
    assert json.loads(facts) == expected
    assert frozen == "0", "what the program's own last actions make is still looked at"
