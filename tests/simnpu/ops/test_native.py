"""The aclnn interface itself, called from C: a wrong argument is refused at once, by operator and argument."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import acl
from isolated import on_simulator

NULL_ARGUMENT, WRONG_ARGUMENT, FAILED_RUN = 161001, 161002, 361001
FLOAT, HALF, INT64, FLOAT8 = 0, 1, 9, 36
NCHW, ND, FRACTAL_NZ = 0, 2, 29


@functools.cache
def operators() -> ctypes.CDLL:
    """The operator library, which needs torch's libraries in the process."""
    import torch  # noqa: F401

    library = ctypes.CDLL("libopapi.so")
    for name in ("aclCreateTensor", "aclCreateScalar"):
        getattr(library, name).restype = ctypes.c_void_p
    return library


def numbers(*values: int) -> Any:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def tensor(
    data: int, *shape: int, kind: int = FLOAT, layout: int = ND, strides: tuple[int, ...] | None = None
) -> ctypes.c_void_p:
    if strides is None:
        strides = tuple(functools.reduce(lambda a, b: a * b, shape[i + 1 :], 1) for i in range(len(shape)))
    rank = ctypes.c_uint64(len(shape))
    made = operators().aclCreateTensor(
        numbers(*shape),
        rank,
        kind,
        numbers(*strides),
        ctypes.c_int64(0),
        layout,
        numbers(*shape),
        rank,
        ctypes.c_void_p(data),
    )
    return ctypes.c_void_p(made)


def prepare(name: str, *arguments: Any) -> tuple[int, ctypes.c_void_p]:
    size, executor = ctypes.c_uint64(7), ctypes.c_void_p()
    code = getattr(operators(), f"{name}GetWorkspaceSize")(*arguments, ctypes.byref(size), ctypes.byref(executor))
    return code, executor


def launch(name: str, executor: ctypes.c_void_p, stream: int) -> int:
    return getattr(operators(), name)(None, ctypes.c_uint64(0), executor, ctypes.c_void_p(stream))


def refused(expected: int, fragments: list[str], name: str, *arguments: Any) -> None:
    code, _ = prepare(name, *arguments)
    message = acl.text()
    assert code == expected, f"{code}: {message}"
    for fragment in fragments:
        assert fragment in message, f"{fragment!r} is not in {message!r}"


@on_simulator(torch=True)
def test_an_operator_runs_when_its_stream_does():
    acl.set_device()
    stream, data, result = acl.stream(), acl.malloc(16), acl.malloc(16)
    acl.write(data, bytes((ctypes.c_float * 4)(-1, 2, -3, 4)))
    code, executor = prepare("aclnnAbs", tensor(data, 4), tensor(result, 4))
    assert code == 0, acl.text()
    assert launch("aclnnAbs", executor, stream) == 0, acl.text()
    acl.call("aclrtSynchronizeStream", stream)
    assert list((ctypes.c_float * 4).from_buffer_copy(acl.read(result, 16))) == [1, 2, 3, 4]


@on_simulator(torch=True)
def test_the_arguments_may_be_destroyed_before_the_operator_runs():
    acl.set_device()
    stream, data, result = acl.stream(), acl.malloc(16), acl.malloc(16)
    acl.write(data, bytes((ctypes.c_float * 4)(-1, 2, -3, 4)))
    arguments = [tensor(data, 4), tensor(result, 4)]
    _, executor = prepare("aclnnNeg", *arguments)
    for argument in arguments:
        operators().aclDestroyTensor(argument)
    assert launch("aclnnNeg", executor, stream) == 0
    acl.call("aclrtSynchronizeStream", stream)
    assert list((ctypes.c_float * 4).from_buffer_copy(acl.read(result, 16))) == [1, -2, 3, -4]


@on_simulator(torch=True)
def test_wrong_arguments_are_refused_at_once_by_name():
    acl.set_device()
    data = acl.malloc(64)
    host = ctypes.create_string_buffer(64)
    good = tensor(data, 4)
    refused(WRONG_ARGUMENT, ["aclnnAbs", "(self)", "null"], "aclnnAbs", None, good)
    refused(WRONG_ARGUMENT, ["aclnnAbs", "(self)", "allocation"], "aclnnAbs", tensor(ctypes.addressof(host), 4), good)
    refused(WRONG_ARGUMENT, ["aclnnAdd", "(other)", "allocation"], "aclnnAdd", good, tensor(data, 17), None, good)
    refused(WRONG_ARGUMENT, ["aclnnAdd", "(alpha)", "null"], "aclnnAdd", good, good, None, good)
    refused(WRONG_ARGUMENT, ["aclnnAbs", "(output)", "memory"], "aclnnAbs", good, tensor(0, 4))
    refused(WRONG_ARGUMENT, ["aclnnAbs", "(self)", "format 29"], "aclnnAbs", tensor(data, 4, layout=FRACTAL_NZ), good)
    refused(WRONG_ARGUMENT, ["aclnnAbs", "(self)", "float8_e4m3fn"], "aclnnAbs", tensor(data, 4, kind=FLOAT8), good)
    refused(WRONG_ARGUMENT, ["aclnnMm", "(mat2)", "null"], "aclnnMm", good, None, good, ctypes.c_int8(0))
    assert prepare("aclnnAbs", tensor(0, 0, 3), tensor(0, 0, 3))[0] == 0, "an empty tensor needs no memory"
    assert prepare("aclnnAbs", tensor(data, 1, 1, 2, 2, layout=NCHW), tensor(data, 1, 1, 2, 2))[0] == 0


@on_simulator(torch=True)
def test_types_and_shapes_that_do_not_fit_are_refused_at_once_by_the_operator_s_name():
    acl.set_device()
    data = acl.malloc(64)
    four, square = tensor(data, 4), tensor(data, 2, 2)
    shape, conversion = "the result has shape [4] but the output tensor has [2, 2]", "Float which does not convert"
    keep = ctypes.c_int8(0)
    refused(WRONG_ARGUMENT, ["aclnnAbs:", shape], "aclnnAbs", four, square)
    refused(WRONG_ARGUMENT, ["aclnnAbs:", conversion], "aclnnAbs", four, tensor(data, 4, kind=INT64))
    refused(WRONG_ARGUMENT, ["aclnnMm:", "dtype"], "aclnnMm", square, tensor(data, 2, 2, kind=HALF), square, keep)
    refused(WRONG_ARGUMENT, ["aclnnMm:", "2x2 and 4x1"], "aclnnMm", square, tensor(data, 4, 1), four, keep)
    for _ in range(2):  # also when a call of the same shapes was accepted before
        assert prepare("aclnnAbs", four, four)[0] == 0
        refused(WRONG_ARGUMENT, ["aclnnAbs:", shape], "aclnnAbs", four, square)
    large = acl.malloc(4 << 20)
    a, b, c = tensor(large, 1024, 512), tensor(large, 1024, 512), tensor(large, 1024, 1024)
    refused(WRONG_ARGUMENT, ["aclnnMm:", "1024x512 and 1024x512"], "aclnnMm", a, b, c, keep)


@on_simulator(torch=True)
def test_a_wrong_value_fails_the_stream_with_the_operator_s_name():
    acl.set_device()
    stream, data, index = acl.stream(), acl.malloc(64), acl.malloc(64)
    acl.write(index, bytes(numbers(7)))
    dim = ctypes.c_int64(0)
    code, executor = prepare("aclnnIndexSelect", tensor(data, 4), dim, tensor(index, 1, kind=INT64), tensor(data, 1))
    assert code == 0, acl.text()
    assert launch("aclnnIndexSelect", executor, stream) == 0
    acl.refuses(FAILED_RUN, "aclnnIndexSelect: index out of range", "aclrtSynchronizeStream", stream)


@on_simulator(torch=True)
def test_what_only_values_can_tell_is_no_matter_of_the_first_phase():
    acl.set_device()
    data = acl.malloc(256)
    matrix = tensor(data, 3, 3)
    assert prepare("aclnnInverse", matrix, matrix)[0] == 0, acl.text()
    assert prepare("aclnnLinalgCholesky", matrix, ctypes.c_bool(False), matrix)[0] == 0, acl.text()


@on_simulator(torch=True)
def test_a_repeatable_executor_may_be_launched_again():
    acl.set_device()
    stream, data = acl.stream(), acl.malloc(4)
    acl.write(data, bytes((ctypes.c_float * 1)(3)))
    code, executor = prepare("aclnnMul", tensor(data, 1), tensor(data, 1), tensor(data, 1))
    assert code == 0
    assert operators().aclSetAclOpExecutorRepeatable(executor) == 0
    for expected in (9, 81):
        assert launch("aclnnMul", executor, stream) == 0
        acl.call("aclrtSynchronizeStream", stream)
        assert (ctypes.c_float * 1).from_buffer_copy(acl.read(data, 4))[0] == expected
    assert operators().aclDestroyAclOpExecutor(executor) == 0
