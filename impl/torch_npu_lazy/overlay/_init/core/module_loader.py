"""What `import torch_npu` loads and starts: of profiler and rendezvous only what an environment variable asks for, or
what others look up."""

from __future__ import annotations

import os

from torch_npu_lazy.core.trigger import when_imported
from torch_npu_lazy.wheel.references import LazyReference


def _initialize_profiler_if_needed() -> None:
    """Start the profiler that is steered from outside, if there is one; it looks at nothing but these variables."""
    # For the attribute only: it loads with its first use.
    __import__("torch_npu.profiler")
    if any(os.environ.get(name) is not None for name in _PROFILER_VARIABLES):
        from torch_npu.profiler._non_intrusive_profile import _NonIntrusiveProfile

        _NonIntrusiveProfile.init()


_PROFILER_VARIABLES = ("PROF_CONFIG_PATH", "KINETO_USE_DAEMON", "MSMONITOR_USE_DAEMON")


def _initialize_rendezvous_if_needed() -> None:
    """Register the NPU's rendezvous in both of torch's tables, by reference: their code is for launchers only."""
    import torch_npu.distributed.rendezvous
    from torch.distributed.rendezvous import register_rendezvous_handler

    home = torch_npu.distributed.rendezvous.__name__
    register_rendezvous_handler("parallel", LazyReference(home, "_parallel_rendezvous_handler"))
    when_imported(
        "torch.distributed.elastic.rendezvous.api",
        lambda api: api.rendezvous_handler_registry.register(
            "parallel", LazyReference(home, "_create_parallel_handler")
        ),
    )
