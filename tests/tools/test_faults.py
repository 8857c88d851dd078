"""tools/simnpu/faults.py: how a disturbed run is classified, and one real fault from end to end."""

from __future__ import annotations

import pytest

from tools.simnpu import faults

LOG = "1.5 pid=1 tid=1 aclrtMalloc(size=512) -> 507000\n"
TRACE = "Traceback (most recent call last):\n  File …\nRuntimeError: {}\n"
WHOLE = [("first", 1), ("second", 2), ("end", None)]


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        ((0, WHOLE, "", LOG), "recovered"),
        ((0, WHOLE, "", ""), "unreached"),
        ((1, WHOLE[:1], TRACE.format("aclrtMalloc: call 1 failed"), LOG), "named"),
        ((1, WHOLE[:1], TRACE.format("AclrtMalloc(&p) failed"), LOG), "named"),
        ((1, WHOLE[:1], "aclrtMalloc failed\n" + TRACE.format("something"), LOG), "unnamed"),
        ((0, [("first", 1), ("second", 3), ("end", None)], "", LOG), "wrong"),
        ((1, [("first", 7)], TRACE.format("aclrtMalloc: call 1 failed"), LOG), "wrong"),
        ((-11, WHOLE[:1], "", LOG), "crash"),
        ((-6, WHOLE, "", LOG), "crash"),
        ((None, WHOLE[:1], "", LOG), "hang"),
    ],
)
def test_a_run_is_classified(ended: tuple, outcome: str):
    reference = faults.Run(0, WHOLE, "", LOG)
    verdict = faults.judge(faults.Fault("aclrtMalloc", "1"), faults.Run(*ended), reference)
    assert verdict.outcome == outcome


def test_what_is_bad_needs_a_reason_and_a_reason_something_bad(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(faults, "KNOWN", {("aclrtFree", "1"): "its own"})
    verdict = faults.Verdict
    crash = verdict(faults.Fault("aclrtMalloc", "1"), "crash", "SIGSEGV")
    explained = verdict(faults.Fault("aclrtFree", "1"), "crash", "SIGSEGV")
    gone = verdict(faults.Fault("aclrtFree", "1"), "named", "")
    assert len(faults.unexplained([crash, explained])) == 1
    assert faults.unexplained([explained]) == []
    assert "KNOWN says" in faults.unexplained([gone])[0]


def test_the_summary_replaces_the_last_one_and_shows_only_what_ends_badly():
    crash = faults.Verdict(faults.Fault("aclrtMalloc", "1"), "crash", "SIGSEGV")
    named = faults.Verdict(faults.Fault("aclrtFree", "1"), "named", "")
    page = f"before\n{faults.SUMMARY_BEGIN}\nold\n{faults.SUMMARY_END}\nafter\n"
    written = faults.with_summary(page, [crash, named], "of this test")
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert "old" not in written
    assert "| named | 1 |" in written
    assert "| `aclrtMalloc` | crash |" in written
    assert "`aclrtFree`" not in written
    assert faults.with_summary(written, [crash, named], "of this test") == written
    with pytest.raises(ValueError, match="begin"):
        faults.with_summary("no marks", [crash], "of this test")


def test_a_fault_from_end_to_end():
    reference = faults.run_program(None)
    assert reference.returncode == 0, reference.output
    assert reference.steps[-1][0] == "end"
    assert faults.calls_in(reference.log)["aclrtMemcpy"] > 0
    fault = faults.Fault("aclrtMemcpy", "1")
    verdict = faults.judge(fault, faults.run_program(fault.rule), reference)
    assert verdict.outcome == "named", verdict
    assert "`aclrtMemcpy` | named |" in faults.document([verdict], "of this test")
