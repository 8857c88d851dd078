"""Results as the plugin would hand them over, of every outcome, for tests that need a report without a run."""

from __future__ import annotations

import copy
from typing import Any

FILE = "expectations/stock/2.10.0.toml"

META: dict[str, Any] = {
    "suite": {
        "version": "0.1.0",
        "started": "2026-11-29T13:05:00+00:00",
        "seconds": 312.4,
        "command": "pytest cases -n auto --forked --subject stock",
        "selected": 0,
    },
    "subject": {
        "name": "stock",
        "release": "2.10.0",
        "torch": "2.10.0+cpu",
        "torch_npu": "2.10.0",
        "python": "3.11.7",
    },
    "device": {"name": "sim", "detail": "0.1.0 torch 2.10.0+cpu torch_npu 2.10.0 src 1a2b3c4d"},
}


def meta() -> Any:
    return copy.deepcopy(META)


def rule(name: str, title: str = "What must hold holds.", text: str = "", level: str = "must") -> Any:
    area, _, _ = name.split("/")
    return {
        "id": name,
        "title": title,
        "text": text,
        "level": level,
        "area": area,
        "file": f"cases/{name}.py",
    }


def expected(
    outcome: str = "fail",
    reason: str = "The wheel imports the compiler eagerly.",
    line: int = 3,
    link: str | None = None,
):
    return {"outcome": outcome, "reason": reason, "file": FILE, "line": line, "link": link}


def failure(message: str = "torch._dynamo must be absent after import torch_npu", **more: Any) -> Any:
    return {"message": message, "expected": None, "found": None, "import_stack": [], "traceback": [], **more}


def control(outcome: str = "fail", **more: Any) -> Any:
    """What plain PyTorch did; without torch_npu."""
    return {
        "outcome": outcome,
        "failure": None if outcome == "pass" else failure("the child forked during the import ends"),
        "reason": None,
        "signal": None,
        "exit_code": 0 if outcome == "pass" else 1,
        "seconds": 2.5,
        "stdout": "",
        "stderr": "",
        "stack_dump": None,
        "reproduce": "python -m harness run cases/races/fork/in_import.py --control",
        **more,
    }


def soak(**more: Any) -> Any:
    command = "python -m harness run cases/races/first_use/threads.py --jitter 8f3a11.2"
    return {
        "seed": "8f3a11",
        "asked": 3,
        "outcomes": {"pass": 2, "fail": 1},
        "unexpected": [{"outcome": "fail", "message": "setup has run once", "reproduce": command}],
        **more,
    }


def point(rule: dict[str, Any], outcome: str = "pass", params: dict[str, Any] | None = None, **more: Any) -> Any:
    """One result. Fields that the outcome demands are filled in; keywords override them."""
    params = params or {}
    arguments = "".join(f" {key}={value}" for key, value in params.items())
    result: dict[str, Any] = {
        "rule": rule,
        "id": f"{rule['id']}[{','.join(f'{key}={value}' for key, value in params.items())}]",
        "params": params,
        "outcome": outcome,
        "expected": None,
        "seconds": 4.31,
        "cpu_seconds": 2.62,
        "checks": 3,
        "failure": None,
        "reason": None,
        "signal": None,
        "exit_code": 0,
        "stdout": "",
        "stderr": "",
        "stack_dump": None,
        "leaked": [],
        "notes": {},
        "control": None,
        "soak": None,
        "reproduce": f"python -m harness run {rule['file']}{arguments}",
    }
    match outcome:
        case "fail":
            result |= {"failure": failure(), "exit_code": 1}
        case "crash":
            result |= {"signal": "SIGSEGV", "exit_code": None}
        case "exit":
            result |= {"exit_code": 3}
        case "timeout":
            result |= {"signal": "SIGKILL", "exit_code": None, "seconds": 60.2}
        case "leak":
            result |= {"leaked": ["pid 4711: python -c 'import time; time.sleep(1e9)'"]}
        case "harness-error":
            result |= {"reason": "the result file ends in the middle of a record", "checks": 0}
        case "unsupported":
            result |= {"reason": "unsupported: needs triton", "checks": 0, "exit_code": None}
        case "upstream":
            result |= {"failure": failure(), "control": control(), "exit_code": 1}
        case "flake":
            result |= {"failure": failure("3 repetitions ended in 2 ways: 2 pass, 1 fail"), "soak": soak()}
        case "xfail":
            result |= {"failure": failure(), "expected": expected(), "exit_code": 1}
        case "xpass":
            result |= {"expected": expected()}
    return {**result, **more}


LAZY = """\
Loading the compiler costs about half of the import time and a thousand modules, and most processes never compile
anything. A name that is bound early also defeats every later patch.

The rule holds in each order of the two imports:

- `torch` first, as most programs do;
- `torch_npu` alone, which imports torch
  by itself;
- twice, because a second import must not undo the first.

By hand:

    python cases/import/lazy/order.py order=npu_only
"""

EAGER = """\
`torch_npu/__init__.py` imports `torch_npu.dynamo` eagerly, which loads all of Dynamo: 823 modules and about 45 % of the
import time. Lazy init moves this behind a post-import trigger from 2.12.0 on.

Until then the reference implementation defers the same eight modules.
"""

STACK = """\
Fatal Python error: Segmentation fault

Thread 0x00007f3c1d7fe700 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait
  File "/usr/lib/python3.11/queue.py", line 171 in get
  File "/usr/lib/python3.11/threading.py", line 982 in run

Current thread 0x00007f3c24a5f740 (most recent call first):
  File "site-packages/torch_npu/npu/graphs.py", line 214 in replay
  File "cases/npugraph/replay/overwritten.py", line 31 in <module>
"""


def results() -> list[Any]:
    """A run as rich as real ones: every outcome and verdict, several areas, long and short texts."""
    lazy = rule(
        "import/lazy/order",
        "`import torch_npu` loads neither Dynamo nor Inductor.",
        LAZY,
    )
    trigger = rule(
        "import/trigger/reload",
        "Setup runs once when `torch._dynamo` is imported, whatever came first.",
        "A trigger that is registered too late never fires; one that fires twice registers the backends twice.",
    )
    inventory = rule(
        "import/inventory/patches", "The Dynamo patches of the eager import are all in place after the trigger."
    )
    silent = rule("import/output/silent", "Importing torch_npu prints nothing.", level="should")
    entry = rule(
        "entry_points/backends/listed",
        "`torch._dynamo.list_backends()` names npu, npugraph_ex and npugraphs before anything was compiled.",
    )
    onnx = rule(
        "onnx/export/same_graph", "`torch.onnx.export` of an NPU module gives the graph that the CPU module gives."
    )
    race = rule(
        "races/first_compile/threads",
        "Threads that compile for the first time at the same moment see one setup, complete, and none sees half of it.",
        "Serving engines warm up from a thread pool.",
    )
    fork = rule("races/fork/in_setup", "A child forked during setup either has all of it or does it again.")
    replay = rule("npugraph/replay/overwritten", "A captured graph replays after its inputs were overwritten in place.")
    stray = rule(
        "npugraph/pool/ends", "Interpreter exit ends the compile workers that a graph pool started.", level="should"
    )
    launch = rule("fast_launch/plan/stride", "A launch plan is rebuilt when the stride of an argument changes.")
    launch_key = rule("fast_launch/plan/weak_key", "The key of a launch plan does not keep its tensors alive.")
    judge = rule("compile/invalid/untouched", "An invalid option fails without touching the device.")
    slow = rule("compile/options/separate", "Options of one `torch.compile` call do not leak into the next.")

    churn = rule("races/fork/in_import", "A child forked while another thread imports can import.", level="should")
    first = rule("races/first_use/threads", "Two threads that use the device first initialise it once.")

    eager = expected(
        "fail",
        EAGER,
        3,
        "https://gitcode.com/Ascend/pytorch/pulls/30000",
    )
    stacked = failure(
        expected="not loaded",
        found="torch._dynamo and 412 modules below it",
        import_stack=[
            "cases/import/lazy/order.py:24 in <module>",
            "site-packages/torch_npu/__init__.py:61 in <module>",
            "site-packages/torch_npu/dynamo/__init__.py:9 in <module>",
        ],
        traceback=[
            "Traceback (most recent call last):",
            '  File "cases/import/lazy/order.py", line 26, in <module>',
            '    probe.modules.absent("torch._dynamo", "torch._inductor")',
            "harness.probe.CheckFailed: torch._dynamo must be absent after import torch_npu",
        ],
    )
    out = [
        point(lazy, "xfail", {"order": order}, failure=stacked, expected=eager, notes={"modules": 1937})
        for order in ("npu_only", "torch_first", "npu_first", "twice")
    ]
    out.append(
        point(
            trigger,
            "fail",
            {"order": "after"},
            failure=failure(
                "setup has run exactly once",
                expected="1",
                found="2",
                traceback=stacked["traceback"],
            ),
            stdout="loaded torch_npu in 1.9 s\n"
            + "".join(f"\x1b[32mINFO\x1b[0m registering backend {n}\n" for n in range(40)),
            stderr="[W compiler_depend.ts:28] Warning: the operator library was opened before the first operator, " * 3,
        )
    )
    out += [point(trigger, "pass", {"order": order}) for order in ("before", "twice")]
    out.append(point(inventory, notes={"patches": 31, "missing": []}))
    out.append(point(silent, stdout="nothing"))
    out += [
        point(entry, "pass", {"exclude_tags": tags, "threads": n})
        for tags in ("none", "default", "experimental") for n in (1, 4)
    ]  # fmt: skip
    out += [point(onnx, "unsupported", {"opset": n}, reason="unsupported: needs onnxscript") for n in (17, 18)]
    out.append(
        point(
            race,
            "timeout",
            {"threads": 8, "barrier": "spin"},
            stack_dump=STACK.replace("Fatal Python error: Segmentation fault\n\n", ""),
        )
    )
    out.append(
        point(race, "exit", {"threads": 2, "barrier": "spin"}, stderr="terminate called without an active exception\n")
    )
    out.append(point(race, "pass", {"threads": 1, "barrier": "none"}))
    out.append(
        point(
            fork, "xfail", {"moment": "during"},
            failure=None, signal="SIGABRT", exit_code=None, stack_dump=STACK,
            expected=expected("crash", "The child inherits a held lock and aborts at its first launch.", 22),
        )
    )  # fmt: skip
    out.append(
        point(
            fork,
            "xpass",
            {"moment": "after"},
            expected=expected("timeout", "The child waits for a thread that it does not have.", 29),
        )
    )
    out.append(point(replay, "crash", {"inputs": "in_place", "streams": 2}, stack_dump=STACK, stderr=STACK))
    out.append(
        point(
            replay,
            "crash",
            {"inputs": "in_place", "streams": 1},
            expected=expected("fail", "Replays read the old values.", 41),
        )
    )
    out += [point(replay, "crash", {"inputs": "swapped", "streams": n}) for n in (1, 2, 3)]
    out.append(point(stray, "leak", {"workers": 4}))
    out += [point(launch, "pass", {"stride": n}) for n in (1, 2, 16)]
    keeps = "The plan cache keeps the arguments of its first launch, so memory is never given back."
    alive = failure("the tensor is dead", expected="None", found="tensor(…)")
    out.append(point(launch_key, "xfail", failure=alive, expected=expected("fail", keeps, 57)))
    out.append(point(judge, "harness-error", {"option": "mode"}))
    out.append(point(judge, "pass", {"option": "npu_backend"}))
    out.append(point(slow, "pass", {}, seconds=48.0, cpu_seconds=91.4))
    out.append(point(churn, "upstream", {"moment": "import"}, stderr="a lock is held\n"))
    out.append(point(first, "flake"))
    out.append(point(race, "fail", {"threads": 4, "barrier": "spin"}, control=control("pass")))
    return out
