"""The NPU's part in torch's primitives for random numbers, and in the decomposition of unpooling. Needed without any
compiler: by eager checkpointing, and by the tables that export reads."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._C import DispatchKey
from torch._prims import rng_prims
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.types import _dtype
from torch_npu_lazy.core.layers import wrap

_HOME = "torch_npu.utils._inductor"
"""Where the replacements say that they come from: programs and tests know them by this module."""


def apply_rng_prims_patches() -> None:
    """Put everything in place. Safe to repeat."""
    patch_philox_rand_offset()
    patch_register_philox_rand()
    patch_rng_prims_device()
    patch_register_run_and_save_rng_state_op()
    patch_register_run_with_rng_state_op()
    patch_max_unpoolnd()


def _replacement(function: Callable[..., Any]) -> Any:
    function.__module__ = _HOME
    return function


# --- philox_rand ---


@_replacement
def _philox_rand_offset(shape: torch.Size) -> torch.Tensor:
    """How far a draw moves the offset: by one per number."""
    # Not on the default device, which may be anything.
    return torch.scalar_tensor(math.prod(shape), dtype=torch.int64, device="cpu")


def _philox_rand(  # noqa: PLR0917 the operator's schema
    shape: torch.Size,
    seed: torch.Tensor,
    offset: torch.Tensor,
    stride: tuple[int, ...] | None,
    device: torch.device,
    dtype: _dtype,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Random numbers of a shape, from seed and offset and nothing else, and how far they move the offset. Raises
    RuntimeError for other devices."""
    del stride
    if device.type != "npu":
        rng_prims.throw_on_non_cuda(device)
    # A generator of its own: the device's running one must neither give the numbers nor notice.
    generator = torch.Generator(device)
    generator.manual_seed(int(seed))
    generator.set_offset(int(offset))  # type: ignore[attr-defined]
    return torch.rand(shape, generator=generator, device=device, dtype=dtype), rng_prims.philox_rand_offset(shape)  # type: ignore[return-value]


@_replacement
def _register_philox_rand() -> None:
    """Give the operator, which torch has defined, the NPU's kernel: torch's own is for CUDA alone."""
    torch.library.register_kernel("rngprims::philox_rand", None, _philox_rand)
    for operator in (torch.ops.rngprims.philox_rand, torch.ops.rngprims.philox_rand.default):
        operator.impl_aten = _philox_rand


def patch_philox_rand_offset() -> None:
    rng_prims.philox_rand_offset = _philox_rand_offset


def patch_register_philox_rand() -> None:
    if rng_prims.register_philox_rand is not _register_philox_rand:
        rng_prims.register_philox_rand = _register_philox_rand
        _register_philox_rand()


# --- which device ---


def patch_rng_prims_device() -> None:
    wrap(rng_prims, "get_device", _or_an_npu)


def _or_an_npu(of_torch: Callable[..., str | None]) -> Callable[..., str | None]:
    @_replacement
    @functools.wraps(of_torch)
    def get_device(args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
        """torch's answer, else the NPU if a tensor lives there."""
        device = of_torch(args, kwargs)
        if device is None and any(isinstance(arg, torch.Tensor) and arg.device.type == "npu" for arg in args):
            return "npu"
        return device

    return get_device


# --- operators run with a state of the generator ---


def _save(operator: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[torch.Tensor, Any]:
    return torch.npu.get_rng_state(), operator(*args, **kwargs)  # type: ignore[attr-defined]


def _replay(state: torch.Tensor, operator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    npu: Any = torch.npu  # type: ignore[attr-defined]
    before = npu.get_rng_state()
    npu.set_rng_state(state)
    try:
        return operator(*args, **kwargs)
    finally:
        npu.set_rng_state(before)


def _shape_only(state: torch.Tensor, operator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """On fake tensors no numbers are drawn, so no state matters."""
    del state
    return operator(*args, **kwargs)


def _route(primitive: Any, on_npu: Callable[..., Any], fake: Callable[..., Any], before: int) -> None:
    """Have a primitive of torch's serve the NPU. before: how many arguments stand before those of the operator that it
    is called with."""
    if DispatchKey.PrivateUse1 in primitive.py_kernels:
        return
    select, fake_of_torch = primitive.py_kernels[DispatchKey.BackendSelect], primitive.python_key_table[FakeTensorMode]

    def serves_npu(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return rng_prims.get_device(args[before:], kwargs) == "npu"

    def backend_select(*args: Any, **kwargs: Any) -> Any:
        return (on_npu if serves_npu(args, kwargs) else select)(*args, **kwargs)

    def fake_tensors(mode: FakeTensorMode, *args: Any, **kwargs: Any) -> Any:
        if not serves_npu(args, kwargs):
            return fake_of_torch(mode, *args, **kwargs)
        with mode:
            return fake(*args, **kwargs)

    primitive.py_kernels[DispatchKey.BackendSelect] = backend_select
    primitive.python_key_table[FakeTensorMode] = fake_tensors
    # Last: it is the mark.
    primitive.py_impl(DispatchKey.PrivateUse1)(on_npu)


def patch_register_run_and_save_rng_state_op() -> None:
    _route(rng_prims.run_and_save_rng_state, _save, _save, before=1)


def patch_register_run_with_rng_state_op() -> None:
    _route(rng_prims.run_with_rng_state, _replay, _shape_only, before=2)


# --- unpooling ---


@_replacement
def _max_unpoolnd_patch(
    self: torch.Tensor, indices: torch.Tensor, output_size: Sequence[int], dim: int
) -> torch.Tensor:
    """The decomposition that max_unpool2d and 3d share. Everything before the last `dim` dimensions is one row of
    planes: each index then says plane and place in one number, and one operator writes them all.

    Shapes: self and indices [*outer, *pooled], result [*outer, *output_size].
    """
    outer = list(self.shape[:-dim])
    planes, places = math.prod(outer), math.prod(output_size)
    first = torch.arange(planes, device=self.device).view(*outer, *[1] * dim) * places
    flat = self.new_zeros([planes * places])
    written = torch.ops.aten._unsafe_index_put(flat, [(indices + first).reshape(-1)], self.reshape(-1), False)
    return written.view(*outer, *output_size)


def patch_max_unpoolnd() -> None:
    torch._decomp.decompositions._max_unpoolnd = _max_unpoolnd_patch


apply_rng_prims_patches()
