"""`pytest cases -n auto --forked`, as users type it: the same verdicts whatever the pytest, whoever owns the flag.

nox runs this file under each supported pytest, with and without pytest-forked and pytest-timeout.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import psutil
import pytest
from fakes import compose

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

PLUGIN = f"""
import sys

sys.path.insert(0, {str(HERE)!r})

from fakes import faux_device
from harness import devices

devices.DEVICES["faux"] = faux_device
"""

CASE = '''"""It ends in one way of many."""
# /// script
# [tool.conformance]
# level = "must"
# matrix = {{ how = {ways} }}
# timeout = {timeout}
# ///
import os, signal, sys, threading
from harness import probe

how = probe.param("how")
probe.check(how != "fails", "it does not fail")
if how == "crashes":
    os.kill(os.getpid(), signal.SIGSEGV)
elif how == "exits":
    os._exit(0)
elif how == "hangs":
    threading.Event().wait()
elif how == "inherits":
    probe.check("pytest" not in sys.modules, "nothing of pytest is inherited")
'''

KNOWN = """
[[expect]]
rule = "ends/ways/all"
points = { how = "fails" }
outcome = "fail"
reason = "it fails, as everybody knows"

[[expect]]
rule = "ends/ways/all"
points = { how = "known_wrongly" }
outcome = "fail"
reason = "once it failed"
"""

VERDICTS = {
    "passes": "pass",
    "inherits": "pass",
    "fails": "xfail",
    "known_wrongly": "xpass",
    "crashes": "crash",
    "exits": "exit",
    "hangs": "timeout",
}


class Checkout:
    """A checkout with the project's own root conftest, one case, and a fake package to judge."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        shutil.copy(ROOT / "conftest.py", pytester.path)
        pytester.makepyfile(faux_plugin=PLUGIN)
        pytester.makeini("[pytest]\nxfail_strict = true\nfilterwarnings = error\n")
        compose("honest", pytester.path / "fakes")

    def case(self, *ways: str, timeout: float) -> None:
        file = self.pytester.path / "cases/ends/ways/all.py"
        file.parent.mkdir(parents=True)
        file.write_text(CASE.format(ways=json.dumps(ways), timeout=timeout))

    def run(self, *arguments: str) -> pytest.RunResult:
        options = ["-p", "faux_plugin", "--device=faux", "--subject-path=fakes/honest"]
        # The deadline is for a harness that hangs; it ends the test instead of the test run.
        return self.pytester.run(
            sys.executable, "-m", "pytest", "cases", "-n", "2", "--forked", *options, *arguments, timeout=100
        )

    def verdicts(self) -> dict[str, str]:
        report = json.loads((self.pytester.path / "build/conformance/report.json").read_text())
        return {point["params"]["how"]: point["outcome"] for rule in report["rules"] for point in rule["points"]}


@pytest.fixture
def checkout(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return Checkout(pytester)


def test_every_way_to_end_keeps_its_verdict(checkout: Checkout) -> None:
    checkout.case(*VERDICTS, timeout=10)
    expectations = checkout.pytester.path / "expectations/stock/2.99.0.toml"
    expectations.parent.mkdir(parents=True)
    expectations.write_text(KNOWN)
    result = checkout.run()
    assert checkout.verdicts() == VERDICTS
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2, xfailed=1, failed=4)
    result.stdout.fnmatch_lines(["isolation: --forked accepted; each case runs in a fresh interpreter*"])


def test_a_conforming_run_is_green(checkout: Checkout) -> None:
    checkout.case("passes", "inherits", timeout=30)
    result = checkout.run()
    assert result.ret == pytest.ExitCode.OK
    assert checkout.verdicts() == {"passes": "pass", "inherits": "pass"}


@pytest.mark.skipif(importlib.util.find_spec("pytest_timeout") is None, reason="needs pytest-timeout")
@pytest.mark.parametrize("method", ["signal", "thread"])
def test_pytest_timeout_ends_a_case_and_leaves_nothing_behind(checkout: Checkout, method: str) -> None:
    checkout.case("hangs", timeout=90)
    result = checkout.run("--timeout=3", f"--timeout-method={method}")
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    left = [
        process for process in psutil.process_iter(["cwd", "cmdline"]) if "ways/all.py" in str(process.info["cmdline"])
    ]
    assert not [process for process in left if str(checkout.pytester.path) in str(process.info["cmdline"])]


def test_the_flag_is_in_the_help_once(checkout: Checkout) -> None:
    result = checkout.pytester.run(sys.executable, "-m", "pytest", "--help", timeout=60)
    assert result.ret == pytest.ExitCode.OK
    assert sum(line.split()[:1] == ["--forked"] for line in result.stdout.lines) == 1
