"""The record of `core.events` put in order for a person: what has run, what is still deferred, what has failed and is
kept, and who caused it."""

from __future__ import annotations

import sys

from torch_npu_lazy.core import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch_npu_lazy.core.events import Event

_ENDS = ("done", "failed")


def as_data(record: Iterable[Event] | None = None) -> dict[str, object]:
    """What `as_text` says, for programs: lists "ran", "deferred", "kept" and "other", the number "dropped", and
    "launches", the call sites of planned fast launch (`fast_launch.sites.as_data`), None where it is off.

    Times are seconds; "at" counts from the first event, "took" is the duration; "by" is "module:line" of whoever asked,
    "from" the outermost line of the program or thread that led there; "inside" is how deep it is in others that ran.
    """
    record = events.so_far() if record is None else tuple(record)
    zero = record[0].at if record else 0.0
    ended = sorted(
        (event for event in record if event.kind in _ENDS and event.seconds is not None),
        # By start; of two that start together the longer one is around the other.
        key=lambda event: (_start(event), -(event.seconds or 0.0)),
    )
    done = {event.subject for event in ended if event.kind == "done"}
    ran = [
        {
            "what": event.subject,
            "result": event.kind,
            "at": _start(event) - zero,
            "took": event.seconds,
            "by": event.cause,
            "from": event.origin,
            "inside": sum(_contains(outer, event) for outer in ended if outer is not event),
            "error": event.detail,
        }
        for event in ended
    ]
    kept = {event.subject: event for event in record if event.kind in ("kept", "failed") and event.subject not in done}
    return {
        "ran": ran,
        "deferred": [
            {"what": event.subject, "by": event.cause, "from": event.origin}
            for event in record
            if event.kind == "defer" and event.subject not in done
        ],
        "kept": [
            {
                "what": event.subject,
                "error": event.detail,
                "at": event.at - zero,
                "by": event.cause,
                "from": event.origin,
            }
            for event in kept.values()
        ],
        "other": [
            {"what": f"{event.kind} {event.subject}".strip(), "detail": event.detail, "at": event.at - zero}
            for event in record
            if event.kind not in (*_ENDS, "defer", "run", "kept")
        ],
        "launches": _launches(),
        "dropped": events.dropped(),
    }


def as_text(record: Iterable[Event] | None = None) -> str:
    """The record as a page of plain text."""
    data = as_data(record)
    lines: list[str] = []

    def section(title: str, entries: Iterable[str], nothing: str) -> None:
        lines.append(title)
        before = len(lines)
        lines.extend(f"  {entry}" for entry in entries)
        if len(lines) == before:
            lines.append(f"  {nothing}")
        lines.append("")

    section("Has run", map(_ran, data["ran"]), "nothing")  # type: ignore[arg-type]
    section(
        "Still deferred",
        (f"{entry['what']}   put off by {_whom(entry)}" for entry in data["deferred"]),  # type: ignore[attr-defined]
        "nothing",
    )
    section(
        "Kept errors, raised again at the next use and tried anew then",
        (f"{entry['what']}: {entry['error']}   by {_whom(entry)}" for entry in data["kept"]),  # type: ignore[attr-defined]
        "none",
    )
    section(
        "Also noted",
        (f"{entry['what']}{': ' if entry['detail'] else ''}{entry['detail']}" for entry in data["other"]),  # type: ignore[attr-defined]
        "nothing",
    )
    if data["launches"] is not None:
        section("Call sites of planned fast launch", map(_site, data["launches"]), "none")  # type: ignore[arg-type]
    if data["dropped"]:
        lines.append(f"{data['dropped']} later events were not kept.")
    return "\n".join(lines).rstrip() + "\n"


def _launches() -> list[dict[str, object]] | None:
    """Of the call sites of planned fast launch; None where it is off."""
    sites = sys.modules.get("torch_npu_lazy.fast_launch.sites")
    return None if sites is None else sites.as_data()


def _site(entry: dict[str, object]) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in entry["reasons"].items())  # type: ignore[attr-defined]
    return (
        f"{entry['id']}  {entry['kernel']}  {entry['state']}; launches: planned {entry['planned']}, by its launcher "
        f"{entry['direct']}, full entry {entry['full']}{f' ({reasons})' if reasons else ''}"
    )


def _ran(entry: dict[str, object]) -> str:
    what = "  " * int(entry["inside"]) + str(entry["what"])  # type: ignore[call-overload]
    took, at = float(entry["took"]) * 1000, float(entry["at"])  # type: ignore[arg-type]
    failed = f"   FAILED: {entry['error']}" if entry["result"] == "failed" else ""
    by = "" if entry["inside"] else f"   by {_whom(entry)}"
    return f"{at:8.3f} s {took:9.1f} ms  {what}{by}{failed}"


def _whom(entry: dict[str, object]) -> str:
    return str(entry["by"]) if entry["by"] == entry["from"] else f"{entry['by']}, from {entry['from']}"


def _start(event: Event) -> float:
    return event.at - (event.seconds or 0.0)


def _contains(outer: Event, inner: Event) -> bool:
    if outer.thread != inner.thread:
        return False
    if _start(outer) == _start(inner) and outer.at == inner.at:
        return False
    return _start(outer) <= _start(inner) and inner.at <= outer.at
