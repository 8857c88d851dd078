"""The loader of torch._dynamo gives to every question the answer that the loader of a plain import gives.

torch_npu hooks the first import of Dynamo by putting a loader of its own around the real one. Debuggers, packers,
coverage tools and `python -m` ask a module's loader for its source, code and file. A wrapper that knows only
create_module and exec_module breaks all of them, and only for Dynamo, and only when torch_npu is installed. The
control is Python's own path finder, asked in the same process: its loader is the one that a plain import uses.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { moment = ["imported", "only_found"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib.util
from importlib.machinery import PathFinder

from harness import probe

NAME = "torch._dynamo"
QUESTIONS = {
    "get_source": lambda loader: len(loader.get_source(NAME)),
    "get_code": lambda loader: loader.get_code(NAME).co_filename,
    "is_package": lambda loader: loader.is_package(NAME),
    "get_filename": lambda loader: loader.get_filename(NAME),
    "get_data": lambda loader: len(loader.get_data(torch._dynamo.__file__ if imported else found.origin)),
    "get_resource_reader": lambda loader: str(loader.get_resource_reader(NAME).files()),
    "path": lambda loader: loader.path,
    "name": lambda loader: loader.name,
}

import torch
import torch_npu

imported = probe.param("moment") == "imported"
if imported:
    import torch._dynamo

    found = torch._dynamo.__spec__
else:
    found = importlib.util.find_spec(NAME)


def answer(question, loader):
    try:
        return QUESTIONS[question](loader)
    except AttributeError as error:
        return f"AttributeError: {error}"


def answers_of(loader):
    return {question: answer(question, loader) for question in QUESTIONS}


expected = answers_of(PathFinder.find_spec(NAME, torch.__path__).loader)
probe.equal(answers_of(found.loader), expected, f"answers of {NAME}'s loader")
