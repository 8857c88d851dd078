"""Runs one point of one case in a fresh interpreter and returns its result as the report wants it."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import devices, environment, process, records, subjects, wire
from .header import Case, Point
from .outcomes import Verdict, judge

CHILD = Path(__file__).with_name("child.py")
OUTPUT_LIMIT = 256 << 20  # bytes on disk for each of stdout and stderr


@dataclass(frozen=True)
class Runner:
    """What all points of a run share. `root` is the directory to which file names in results are relative.

    `size_limit` is in bytes for each output stream.
    """

    installed: subjects.Installed
    device: devices.Device
    root: Path
    size_limit: int = OUTPUT_LIMIT

    def run(self, point: Point, live: bool = False) -> dict[str, Any]:
        """Run `point`. With `live` its output goes straight to the terminal instead of into the result."""
        lacking = self.lacking(point.case)
        if lacking:
            return self._result(point, Verdict("unsupported", reason=lacking), process.Ended(), records.Records())
        with ExitStack() as stack:
            root = stack.enter_context(environment.scratch())
            result, dump = (stack.enter_context((root / name).open("ab")) for name in ("result", "dump"))
            streams: dict[str, Any] = {"stdout": None, "stderr": None}
            if not live:
                streams = {name: stack.enter_context((root / name).open("ab")) for name in streams}
            env = environment.make(point, self.installed, self.device, root)
            env[wire.RESULT_FD], env[wire.DUMP_FD] = str(result.fileno()), str(dump.fileno())
            ended = process.run(
                [*subjects.interpreter(), str(CHILD), str(point.case.path.resolve()), *point.arguments],
                env=env,
                cwd=root / environment.WORK,
                **streams,
                pass_fds=[result.fileno(), dump.fileno()],
                timeout=point.case.timeout,
                size_limit=self.size_limit,
            )
            found = records.read(root / "result")
            verdict = judge(
                ended,
                found,
                subjects.contradiction(self.installed, found.versions),
                point.case.timeout,
                self.size_limit,
            )
            texts = {name: records.text(root / name) for name in ("dump", *(() if live else streams))}
        return self._result(point, verdict, ended, found, texts)

    def broken(self, point: Point, reason: str) -> dict[str, Any]:
        """The result of a point that the harness itself could not run."""
        return self._result(point, Verdict("harness-error", reason=reason), process.Ended(), records.Records())

    def lacking(self, case: Case) -> str | None:
        """Why the case cannot be judged here, or None."""
        reasons = []
        for need in case.needs:
            reason = devices.missing(need, self.device, self.installed)
            if reason:
                reasons.append(f"needs {need}: {reason}")
        return "; ".join(reasons) or None

    def applies(self, case: Case) -> bool:
        """Whether the rule speaks of the release at hand."""
        return case.releases.contains(self.installed.release, prereleases=True)

    def reproduce(self, point: Point) -> str:
        """The shell command that runs this point alone, from `root`."""
        words = ["python", "-m", "harness", "run", self.relative(point.case.path), *point.arguments]
        words += ["--subject", self.installed.subject.name, "--device", self.device.name]
        if self.installed.path is not None:
            words += ["--subject-path", self.relative(self.installed.path)]
        return shlex.join(words)

    def relative(self, path: Path) -> str:
        path, root = path.resolve(), self.root.resolve()
        return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)

    def _result(
        self,
        point: Point,
        verdict: Verdict,
        ended: process.Ended,
        found: records.Records,
        texts: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        texts = texts or {}
        case = point.case
        return {
            "rule": {
                "id": case.rule,
                "title": case.title,
                "text": case.text,
                "level": case.level,
                "area": case.area,
                "file": self.relative(case.path),
            },
            "id": point.id,
            "params": dict(point.params),
            "outcome": verdict.outcome,
            "expected": None,
            "seconds": round(ended.seconds, 3),
            "cpu_seconds": round(ended.cpu_seconds, 3),
            "checks": found.checks,
            "failure": verdict.failure,
            "reason": verdict.reason,
            "signal": verdict.signal,
            "exit_code": verdict.exit_code,
            "stdout": texts.get("stdout", ""),
            "stderr": texts.get("stderr", ""),
            "stack_dump": texts.get("dump") or None,
            "leaked": verdict.leaked,
            "notes": found.notes,
            "reproduce": self.reproduce(point),
        }
