"""Whatever is done to what the harness reads (records, headers, expectations), it ends in a verdict or in one line that
says where, never in a traceback or a report that is lost. `make fuzz` tries ten thousand of each."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_header import GOOD

from harness import expectations, header, records, report
from harness.explain import explain
from harness.inside.sealing import KEY_BYTES, Chain
from harness.outcomes import judge
from harness.process import Ended
from harness.report.model import Meta
from harness.results import NOT_JUDGED, Outcome, Result

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "200"))
# Without the environment variable always the same ones: `make test` says the same thing twice.
SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
T = TypeVar("T")
KEY = bytes(range(KEY_BYTES))

STREAM: list[dict[str, Any]] = [
    {"kind": "check", "ok": True, "message": "it holds"},
    {"kind": "note", "key": "calls", "value": {"aclrtMalloc": 3}},
    {
        "kind": "check",
        "ok": False,
        "message": "it fails",
        "expected": "1",
        "found": None,
        "facts": {"n": "2"},
        "import_stack": ["a.py:1 in f"],
        "traceback": ["b.py:2 in g"],
    },
    {"kind": "unsupported", "reason": "no such thing"},
    {"kind": "versions", "torch": {"version": "2.13.0", "file": "/torch/__init__.py"}, "modules": 900},
    {
        "kind": "end",
        "how": "raised",
        "type": "CheckFailed",
        "message": "it fails",
        "traceback": [],
        "probe_error": False,
        "checks": 2,
        "failures": 1,
    },
]

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def altered(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The stream with records left out, repeated and moved, with fields gone and fields of any value."""
    stream = [dict(draw(st.sampled_from(STREAM))) for _ in range(draw(st.integers(0, 8)))]
    for entry in stream:
        for name in draw(st.lists(st.sampled_from(sorted(entry)), max_size=2)):
            if draw(st.booleans()):
                entry.pop(name, None)
            else:
                entry[name] = draw(values)
    return stream


def attempt(read: Callable[[], T], error: type[Exception]) -> tuple[T | None, Any]:
    """What it returns, or the error of this kind."""
    try:
        return read(), None
    except error as raised:
        return None, raised


def sealed(stream: list[dict[str, Any]]) -> bytes:
    chain = Chain(KEY)
    lines = [json.dumps(entry).encode() for entry in stream]
    return b"".join(chain.seal(line) + b" " + line + b"\n" for line in lines)


def damaged(data: bytes, draw: Callable[[st.SearchStrategy[Any]], Any]) -> bytes:
    for _ in range(draw(st.integers(0, 3))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 40))
        data = data[:at] + draw(st.binary(max_size=10)) + data[at + length :]
    return data


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    return damaged(sealed(draw(altered())), draw)


def judged(data: bytes, ended: Ended) -> Result:
    found = records.read(data, KEY)
    verdict = judge(ended, found, None, 1.0, 1 << 20)
    failed = found.failed and not found.damaged
    assert not (failed and verdict.outcome == Outcome.PASS)
    assert verdict.outcome in {Outcome.PASS, Outcome.FAIL, Outcome.CRASH, Outcome.EXIT, *NOT_JUDGED}
    return {
        "rule": {"id": "a/b/c", "title": "t", "text": "", "level": "must", "area": "a", "file": "cases/a/b/c.py"},
        "id": "a/b/c",
        "params": {},
        "outcome": verdict.outcome,
        "expected": None,
        "seconds": 0.0,
        "cpu_seconds": 0.0,
        "checks": found.checks,
        "failure": verdict.failure,
        "reason": verdict.reason,
        "signal": verdict.signal,
        "exit_code": verdict.exit_code,
        "stdout": "",
        "stderr": "",
        "stack_dump": None,
        "leaked": [],
        "notes": found.notes,
        "control": None,
        "soak": None,
        "reproduce": "python -m harness run cases/a/b/c.py",
    }


META: Meta = {
    "suite": {"version": "1", "started": "2026-01-01T00:00:00+00:00", "seconds": 1.0, "command": "c", "selected": 1},
    "subject": {"name": "stock", "release": "2.13.0", "torch": "2.13.0", "torch_npu": "2.13.0", "python": "3.11.7"},
    "device": {"name": "sim", "detail": "simulated"},
}


def test_the_stream_itself_is_read_as_it_was_sent() -> None:
    found = records.read(sealed(STREAM), KEY)
    assert found.damaged is None
    assert (found.checks, len(found.failed), found.notes) == (2, 1, {"calls": {"aclrtMalloc": 3}})


@SETTINGS
@given(data=streams(), code=st.sampled_from([0, 1, -9, -11]))
def test_any_records_end_in_a_verdict_and_a_whole_report(data: bytes, code: int) -> None:
    result = judged(data, Ended(returncode=code))
    assert explain(result)
    built = report.build([result], META)
    report.check(json.loads(json.dumps(built, allow_nan=False)))


@SETTINGS
@given(data=st.data())
def test_any_damage_to_sealed_records_is_seen(data: st.DataObject) -> None:
    whole = sealed(STREAM)
    found = records.read(changed := damaged(whole, data.draw), KEY)
    # What is cut off at the end of a record is what a killed child leaves: no end record, and so no pass.
    assert found.damaged or changed == whole or (whole.startswith(changed) and found.end is None)


PIECES = st.sampled_from(
    ["[", "]", "{", "}", '"', "'", "=", ",", "\n", "# ", "# ///", "nan", "1e999", "\0", "\ufeff", "9" * 5000]
)


@st.composite
def texts(draw: st.DrawFn, text: str) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 30))
        text = text[:at] + draw(PIECES | st.text(max_size=6)) + text[at + length :]
    return damaged(text.encode("utf-8", "surrogatepass"), draw)


@SETTINGS
@given(content=texts(textwrap.dedent(GOOD).lstrip("\n")))
def test_any_header_is_read_or_refused_by_file_and_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "area/topic/case.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    case, refused = attempt(lambda: header.read(path), header.HeaderError)
    if case is None:
        assert str(refused).startswith(f"{path}:{refused.line}: ")
        return
    assert all(point.id.isprintable() for point in case.points())
    json.dumps([dict(point.params) for point in case.points()], allow_nan=False)
    assert 0 < case.timeout <= header.LONGEST_TIMEOUT


ENTRIES = """
[[expect]]
rule = "area/topic/case"
points = { order = ["a"], twice = true }
outcome = "fail"
reason = "it differs"
link = "https://example.org/1"

[[expect]]
rule = "area/topic/case"
points = { order = "b" }
outcome = "crash"
reason = "it crashes"
"""


@SETTINGS
@given(content=texts(ENTRIES))
def test_any_expectations_are_read_or_refused_by_file_and_line(tmp_path: Path, content: bytes) -> None:
    good, file = tmp_path / "area/topic/case.py", tmp_path / "stock.toml"
    good.parent.mkdir(parents=True, exist_ok=True)
    good.write_text(textwrap.dedent(GOOD).lstrip("\n"))
    file.write_bytes(content)
    cases = [header.read(good)]
    entries, refused = attempt(lambda: expectations.read(file, cases, "stock.toml"), expectations.ExpectationError)
    if entries is None:
        assert all(line.startswith("stock.toml:") for line in str(refused).splitlines())
    else:
        json.dumps([entry.entry() for entry in entries], allow_nan=False)
