"""Files inside the torch._dynamo package can be reached through the standard library after a lazy import.

importlib.resources, pkgutil and inspect go through the loader. A loader that hides the real one makes the package
look empty: data files vanish for tools that bundle or document torch, without any error that points to torch_npu.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { through = ["the_loader", "inspect"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import importlib.resources
import inspect
import pkgutil
from pathlib import Path

from harness import probe

import torch
import torch_npu

import torch._dynamo

NAME = "torch._dynamo"
folder = Path(torch.__file__).parent / "_dynamo"
source = (folder / "__init__.py").read_text()


def by_pkgutil():
    data = pkgutil.get_data(NAME, "__init__.py")
    return data and len(data.decode())


def by_listing():
    return sorted(entry.name for entry in importlib.resources.files(NAME).iterdir())


def by_reading():
    return len(importlib.resources.files(NAME).joinpath("__init__.py").read_text())


LOOKUPS = {
    "the_loader": {
        "pkgutil.get_data": (by_pkgutil, len(source)),
        "resources.is_file": (lambda: importlib.resources.files(NAME).joinpath("__init__.py").is_file(), True),
        "resources.iterdir": (by_listing, sorted(entry.name for entry in folder.iterdir())),
        "resources.read_text": (by_reading, len(source)),
    },
    # inspect finds the file by itself and asks the loader only where there is none.
    "inspect": {
        "getsource": (lambda: len(inspect.getsource(torch._dynamo)), len(source)),
        "getsourcefile": (lambda: inspect.getsourcefile(torch._dynamo), str(folder / "__init__.py")),
    },
}
probe.each(
    LOOKUPS[probe.param("through")],
    lambda look_up, expected: probe.equal(look_up(), expected, f"what is found of {NAME}"),
)
