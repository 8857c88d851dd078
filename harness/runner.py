"""Runs one point of one case in a fresh interpreter and returns its result as the report wants it."""

from __future__ import annotations

import shlex
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from . import devices, interruptions, isolation, process, records, subjects
from .header import Case, Point, relative
from .inside.protocol import DUMP_FD, RESULT_FD
from .outcomes import Verdict, judge
from .results import EXCUSABLE, Control, Outcome, Result
from .scratch import Scratch

CHILD = Path(__file__).parent / "inside/child.py"
OUTPUT_LIMIT = 256 << 20  # bytes on disk for each of stdout and stderr
NO_CONTROL = "the case imports torch_npu in its control as well; let it do so only `if not probe.control`"


@dataclass(frozen=True)
class RunOptions:
    """How a point is run: with its output live, with the delays of a seed, as a control without torch_npu."""

    live: bool = False
    soak: str | None = None
    control: bool = False


@dataclass(frozen=True)
class Runner:
    """What all points of a run share. `root` is the directory to which file names in results are relative.

    `size_limit` is in bytes for each output stream.
    """

    installed: subjects.Installed
    device: devices.Device
    root: Path
    size_limit: int = OUTPUT_LIMIT
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Marks the processes of a run, those of all its workers."""

    def run(self, point: Point, live: bool = False, soak: str | None = None) -> Result:
        """Run `point`; when it ends badly and has a control, that too. With `live` its output goes straight to the
        terminal instead of into the result. `soak` is a seed of random delays."""
        result = self._once(point, RunOptions(live, soak))
        if point.controlled and result["outcome"] in EXCUSABLE:
            control = self.control(point, soak=soak)
            result["control"] = cast(Control, {name: control[name] for name in Control.__annotations__})
            if control["outcome"] == result["outcome"]:
                result["outcome"] = Outcome.UPSTREAM
        return result

    def control(self, point: Point, live: bool = False, soak: str | None = None) -> Result:
        """Run `point` with plain PyTorch: no torch_npu can be imported, and the case sees probe.control."""
        return self._once(point, RunOptions(live, soak, control=True))

    def _once(self, point: Point, options: RunOptions) -> Result:
        lacking = self.lacking(point.case)
        if lacking:
            return self._result(point, options, Verdict(Outcome.UNSUPPORTED, reason=lacking))
        with ExitStack() as stack:
            # Nothing of a point is left half done: not its processes, not its directory.
            interrupted = stack.enter_context(interruptions.held())
            scratch = stack.enter_context(Scratch(isolation.FOLDERS))
            root = scratch.path
            dump = stack.enter_context((root / "dump").open("a+b"))
            received = stack.enter_context(records.Channel())
            streams: dict[str, Any] = {"stdout": None, "stderr": None}
            if not options.live:
                streams = {name: stack.enter_context((root / name).open("a+b")) for name in streams}
            env = isolation.make(
                point, self.installed, self.device, root, control=options.control, soak=options.soak, run=self.name
            )
            env[RESULT_FD], env[DUMP_FD] = str(received.childs), str(dump.fileno())
            ended = process.run(
                [*subjects.interpreter(), str(CHILD), str(point.case.path.resolve()), *point.arguments],
                env=env,
                cwd=root / isolation.WORK,
                **streams,
                pass_fds=[received.childs, dump.fileno()],
                timeout=point.case.timeout,
                size_limit=self.size_limit,
                incoming=received,
                interrupted=interrupted,
            )
            found = received.records()
            verdict = judge(
                ended,
                found,
                NO_CONTROL
                if (root / isolation.EVIDENCE).exists()
                else subjects.contradiction(self.installed, found.versions),
                point.case.timeout,
                self.size_limit,
                loads="torch_npu" if point.case.imports_subject and not options.control else None,
            )
            files = {"dump": dump, **({} if options.live else streams)}
            texts = {name: records.text(file.fileno()) for name, file in files.items()}
            if (problem := scratch.remove()) and verdict.outcome == Outcome.PASS:
                verdict = Verdict(Outcome.HARNESS_ERROR, reason=problem)
        return self._result(point, options, verdict, ended=ended, found=found, texts=texts)

    def broken(self, point: Point, reason: str) -> Result:
        """The result of a point that the harness itself could not run."""
        return self._result(point, RunOptions(), Verdict(Outcome.HARNESS_ERROR, reason=reason))

    def lacking(self, case: Case) -> str | None:
        """Why the case cannot be judged here, or None."""
        missing = ((need, devices.missing(need, self.device, self.installed)) for need in case.needs)
        return "; ".join(f"needs {need}: {reason}" for need, reason in missing if reason) or None

    def applies(self, case: Case) -> bool:
        """Whether the rule speaks of the release at hand."""
        return case.releases.contains(self.installed.release, prereleases=True)

    def reproduce(self, point: Point, options: RunOptions) -> str:
        """The shell command that runs this point alone, or its control, from `root`."""
        words = ["python", "-m", "harness", "run", self.relative(point.case.path), *point.arguments]
        words += ["--subject", self.installed.subject.name, "--device", self.device.name]
        words += [*(["--control"] if options.control else []), *(["--jitter", options.soak] if options.soak else [])]
        if self.installed.path is not None:
            words += ["--subject-path", self.relative(self.installed.path)]
        return shlex.join(words)

    def relative(self, path: Path) -> str:
        return relative(path, self.root)

    def _result(
        self,
        point: Point,
        options: RunOptions,
        verdict: Verdict,
        *,
        ended: process.Ended | None = None,
        found: records.Records | None = None,
        texts: dict[str, str] | None = None,
    ) -> Result:
        ended, found, texts = ended or process.Ended(), found or records.Records(), texts or {}
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
            "control": None,
            "soak": None,
            "reproduce": self.reproduce(point, options),
        }
