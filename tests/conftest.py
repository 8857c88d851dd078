"""Which tests run where and when, and a clean environment for all of them: what a shell or a CI system has set for
torch, torch_npu, Triton, CANN or the simulator changes no test (`CI=true` alone makes Inductor refuse operators). What
the machine needs (certificates, proxies, compilers) stays. Temporary files go into one directory, which ends with the
run: killed programs leave theirs behind, and many tests kill."""

from __future__ import annotations

import os
import tempfile

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

READ_BY_THE_TESTED = (
    *("TORCH", "PYTORCH", "INDUCTOR", "TRITON", "NPU", "ASCEND", "ACL", "HCCL", "SIMNPU_"),
    *("TASK_QUEUE", "FAST_RUN", "PYTHONWARNINGS", "PYTHONHASHSEED", "PYTHONPATH"),
)
KEPT = ("SIMNPU_CACHE", "SIMNPU_LLVM")  # where things are, not how they behave


def pytest_configure(config: pytest.Config) -> None:
    for name in list(os.environ):
        if name == "CI" or (name.startswith(READ_BY_THE_TESTED) and name not in KEPT):
            del os.environ[name]
    if not hasattr(config, "workerinput"):  # xdist's workers inherit it
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # tmp_path: pytest keeps the last three
        temporary = tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True)
        config.add_cleanup(temporary.cleanup)
        os.environ["TMPDIR"] = tempfile.tempdir = temporary.name


# By the start of their names. What takes longest begins first, so that no processor idles in the end.
LONGEST = (
    *("simnpu/toolchain/compiling/test_models", "simnpu/toolchain/language", "simnpu/hccl/test_torch"),
    *("tools/test_stress", "simnpu/toolchain/compiling", "simnpu/test_bench_op_cost", "bench"),
    "harness/test_forked",
)
# Their tests share what is made once for the module; two of xdist's workers would make it twice.
TOGETHER = (
    *("simnpu/toolchain/compiling/test_models.py", "simnpu/toolchain/language", "simnpu/test_models.py"),
    *("simnpu/ops/test_ops.py::test_operators", "simnpu/ops/test_ops.py::test_every_family"),
    *("impl/overlay/test_import_names.py", "harness/report/test_page.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        matching = (number for number, start in enumerate(LONGEST) if item.nodeid.startswith(f"tests/{start}"))
        return next(matching, len(LONGEST))

    items.sort(key=rank)


class Together(LoadScopeScheduling):
    """Gives out tests one by one, in their order, but to one worker those that share something."""

    def _split_scope(self, nodeid: str) -> str:
        shared = next((start for start in TOGETHER if nodeid.startswith(f"tests/{start}")), None)
        return shared.partition("::")[0] if shared else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Together | None:
    if config.option.dist != "load":
        return None
    config.option.loadscopereorder = False
    return Together(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: more than there are processors, since many tests wait: for a case that hangs, for a compiler's end."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)
