"""A compile worker that is killed while it compiles a kernel for an NPU costs that compile, and nothing after it.

The out-of-memory killer takes the largest process, which is often a compile worker. Its compile may end in an error
that says so; then the next one must be right, in this process and in a new one with the same caches. Whether workers
find the device as they need it when torch loads torch_npu by itself is a rule of its own.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "triton", "kernels"]
# timeout = 240
# releases = ">=2.13"
# ///

import json
import os
import shlex
import shutil
import signal
from pathlib import Path

from harness import probe

# The first call says who has called and waits until that process is dead; then it goes on, as an orphan does.
COMPILER = """#!/bin/sh
if [ "$1" != --help ] && mkdir {place}/first 2>/dev/null; then
    echo $PPID > {place}/compiling
    read -r go < {place}/killed
fi
exec {real} "$@"
"""
place = Path("compiler").resolve()
program = place / "bin" / "bishengir-compile"
program.parent.mkdir(parents=True)
real = shutil.which(program.name)
if real is None:
    probe.unsupported("needs bishengir-compile on PATH, to stop it at work")
program.write_text(COMPILER.format(real=shlex.quote(real), place=shlex.quote(str(place))))
program.chmod(0o755)
for name in ("compiling", "killed"):
    os.mkfifo(place / name)
os.environ["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "2"

import torch
import torch_npu
from torch._inductor.async_compile import AsyncCompile

# For a new process, which finds what this one has left in the caches.
PROGRAM = """
import torch, torch_npu

x = torch.linspace(-2, 2, 40).reshape(8, 5).npu()
compiled = torch.compile(lambda x: torch.tanh(x) * 2 + 1, backend="inductor", fullgraph=True)
print(compiled(x).tolist())
"""


def function(x):
    return torch.tanh(x) * 2 + 1


def kill():
    """The worker that compiles, or nobody if the compile has ended without one."""
    worker = int(compiling.readline())
    if worker:
        os.kill(worker, signal.SIGKILL)
        (place / "killed").write_text("go on\n")
    return worker


x = torch.linspace(-2, 2, 40).reshape(8, 5)
compiled = torch.compile(function, backend="inductor", fullgraph=True)
AsyncCompile.wait_pool_ready()
# Both ends, so that opening waits for nobody.
end = os.open(place / "compiling", os.O_RDWR)
with os.fdopen(end, encoding="ascii") as compiling:
    killer = probe.thread(kill)
    error = None
    try:
        result = compiled(x.npu())
    except Exception as raised:
        error = raised
        probe.note("error", f"{type(raised).__name__}: {raised}")
    os.write(end, b"0\n")
    worker = killer.join()
probe.check(worker not in (0, os.getpid()), "a worker was killed at work", worker=worker, error=error)
if error is None:
    probe.close(result, function(x), "result of the compile whose worker was killed", rtol=1e-5, atol=1e-5)
else:
    probe.check("exited unexpectedly" in str(error), "the error says what happened", error=error)
probe.close(compiled(x.npu()), function(x), "result of the next call", rtol=1e-5, atol=1e-5)
found = json.loads(probe.python(PROGRAM).stdout.splitlines()[-1])
probe.close(torch.tensor(found), function(x), "result of a new process with the same caches", rtol=1e-5, atol=1e-5)
