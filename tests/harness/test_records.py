"""What a child tells is taken in as it comes, and checked where it is read."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

import pytest

from harness import records
from harness.inside.sealing import KEY_BYTES, Chain

KEY = bytes(KEY_BYTES)
CHECK = {"kind": "check", "ok": True, "message": "it holds"}
FAILED = {"kind": "check", "ok": False, "message": "it fails"}
END = {"kind": "end", "how": "returned", "checks": 1, "failures": 0}


def lines(*entries: dict[str, Any] | bytes) -> list[bytes]:
    chain = Chain(KEY)
    texts = [entry if isinstance(entry, bytes) else json.dumps(entry).encode() for entry in entries]
    return [chain.seal(text) + b" " + text + b"\n" for text in texts]


def read(*entries: dict[str, Any] | bytes) -> records.Records:
    return records.read(b"".join(lines(*entries)), KEY)


def test_whole_records_are_believed() -> None:
    found = read(CHECK, END)
    assert (found.damaged, found.checks, found.failed, found.end) == (None, 1, [], END)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (FAILED | {"expected": 5}, "'expected' has no value that it can have"),
        (FAILED | {"import_stack": [5]}, "'import_stack' has no value"),
        (FAILED | {"facts": {"a": 1}}, "'facts' has no value"),
        (CHECK | {"ok": 1}, "'ok' has no value"),
        ({"kind": "unsupported", "reason": {}}, "'reason' has no value"),
        ({"kind": "note", "key": [], "value": 1}, "'key' has no value"),
        (b'{"kind": "note", "key": "a", "value": NaN}', "NaN is no number that a report can hold"),
        (
            b'{"kind": "note", "key": "a", "value": ' + b"[" * 60 + b"]" * 60 + b"}",
            "nested too deeply, in more than 50 levels",
        ),
        (b'{"kind": "note", "key": "a", "value": ' + b"[" * 9000 + b"]" * 9000 + b"}", "nested too deeply"),
        (b'{"kind": "note", "key": "a", "value": ' + b"9" * 6000 + b"}", "ValueError"),
        (b'{"kind": ["check"]}', "TypeError"),
        (b'{"kind": "secret"}', "KeyError: 'secret'"),
        (b'["check"]', "TypeError"),
        (b"\xff", "UnicodeDecodeError"),
        ({"kind": "check", "ok": True}, "lacks message"),
        (END | {"how": "well"}, "'how' has no value"),
        (END | {"how": ["returned"]}, "'how' has no value"),
        (END | {"how": "raised"}, "the end record (raised) lacks type, message, traceback, probe_error"),
        (END | {"checks": 2}, "the case counted 2 checks, 0 failed; 1 arrived, 0 failed"),
        (END | {"failures": 1}, "the case counted 1 checks, 1 failed; 1 arrived, 0 failed"),
        (END | {"checks": True}, "'checks' has no value"),
        ({"kind": "versions", "torch": {"version": 2}}, "the versions record has values that are no texts"),
    ],
)
def test_a_record_of_a_wrong_type_damages_its_point_alone(entry: dict[str, Any] | bytes, said: str) -> None:
    found = read(CHECK, entry)
    assert found.damaged is not None
    assert said in found.damaged
    assert len(found.damaged) < 500


@pytest.mark.parametrize("missing", range(3))
def test_a_record_that_is_missing_shows(missing: int) -> None:
    whole = lines(CHECK, FAILED, {**END, "checks": 2, "failures": 1})
    found = records.read(b"".join(line for number, line in enumerate(whole) if number != missing), KEY)
    assert found.damaged is not None or found.end is None


def test_what_comes_twice_or_after_the_end_shows() -> None:
    first, second, end = lines(CHECK, CHECK, END | {"checks": 2})
    assert "record 2 is not the next one" in str(records.read(first + first + second + end, KEY).damaged)
    assert "comes after the end record" in str(read(CHECK, END, CHECK).damaged)
    assert "is cut off" in str(records.read(first + second[:30], KEY).damaged)


def test_long_texts_are_clipped() -> None:
    found = read(FAILED | {"message": "x" * 3_000_000, "facts": {"k": "y" * 3_000_000}})
    assert found.failed[0]["message"].endswith("… (3000000 characters)")
    assert len(json.dumps(found.failed)) < 3 * records.TEXT_LIMIT


def test_a_channel_takes_in_what_comes_and_does_not_wait() -> None:
    with records.Channel() as channel:
        with socket.socket(fileno=os.dup(channel.childs)) as child:
            chain = Chain(child.recv(KEY_BYTES))
            assert channel.drain()
            for entry in (CHECK, END):
                text = json.dumps(entry).encode()
                child.sendall(chain.seal(text) + b" " + text + b"\n")
                assert channel.drain()
        assert channel.records().end == END


def test_too_much_is_taken_in_and_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "RECORDS_LIMIT", 1000)
    with records.Channel() as channel:
        with socket.socket(fileno=os.dup(channel.childs)) as child:
            child.recv(KEY_BYTES)
            for _ in range(30):
                child.sendall(b"x" * 100)
                assert channel.drain()
        assert channel.records().damaged == "the case told more than 1000 bytes of results"


def test_a_channel_cannot_be_opened_a_second_time() -> None:
    with records.Channel() as channel, pytest.raises(OSError, match="No such device or address"):
        os.open(f"/proc/self/fd/{channel.childs}", os.O_RDONLY)
