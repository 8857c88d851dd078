"""The tests themselves: what a shell or a CI system has set does not reach them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from deadlines import HANG

SET = {"CI": "true", "TORCH_LOGS": "+dynamo", "TRITON_INTERPRET": "1", "SIMNPU_DEVICES": "7", "ASCEND_HOME_PATH": "/no"}
KEPT = {"SIMNPU_CACHE": "/somewhere", "HTTPS_PROXY": "http://proxy"}
INSIDE = "HARNESS_TESTS_INSIDE"


def test_what_a_shell_sets_reaches_no_test():
    if INSIDE in os.environ:
        assert {name: os.environ.get(name) for name in (*SET, *KEPT)} == dict.fromkeys(SET) | KEPT
        return
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(__file__))]
    environment = os.environ | SET | KEPT | {INSIDE: "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=HANG)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
