"""What the making of a configuration does beside noticing Dynamo's import: all that it did before."""

from __future__ import annotations

import subprocess
import sys

from deadlines import HANG

import simnpu

PROGRAM = """
import torch_npu_lazy
import torch
from torch.utils._config_module import ConfigModule
from torch_npu_lazy.core.trigger import finder

done = []

@classmethod
def earlier(cls, **given):
    done.append(("earlier", cls.__name__, given))

if "earlier" in WHO:
    ConfigModule.__init_subclass__ = earlier
import torch_npu
ours = vars(ConfigModule)["__init_subclass__"]

@classmethod
def later(cls, **given):
    done.append(("later", cls.__name__, given))
    ours.__get__(None, cls)(**given)

if "later" in WHO:
    ConfigModule.__init_subclass__ = later
done.clear()
type(finder).notice = lambda self: done.append("noticed")
try:
    class Made(ConfigModule, key=1): ...
except TypeError as error:
    assert "earlier" not in WHO and "keyword" in str(error), error
    class Made(ConfigModule): ...
print(done)
"""


def _done(who: str) -> str:
    environment = simnpu.environ() | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "TORCH_NPU_LAZY": "1"}
    command = [sys.executable, "-s", "-c", f"WHO = {who!r}\n{PROGRAM}"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=HANG)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()[-1]


def test_what_others_do_is_done_whoever_came_first() -> None:
    later, earlier = "('later', 'Made', {'key': 1})", "('earlier', 'Made', {'key': 1})"
    assert _done("earlier later") == f"[{later}, 'noticed', {earlier}]"
    assert _done("earlier") == f"['noticed', {earlier}]"


def test_where_nobody_else_does_anything_python_does_what_it_does() -> None:
    assert _done("") == "['noticed', 'noticed']"
