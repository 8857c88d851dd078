"""What becomes of a module of torch_npu that a profile names: the wheel's body, then ours, in one namespace, with no
trace of the machinery; or a placeholder until it is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from deadlines import HANG

IMPL = Path(__file__).parents[3] / "impl"

START = """\
import importlib, sys
import torch_npu_lazy
from torch_npu_lazy import profiles
from torch_npu_lazy.profiles import Lazy
from torch_npu_lazy.core import events
from torch_npu_lazy.wheel import patching
patching.OVERLAY = {overlay!r}
profile = profiles.Profile({profile})
profiles.find = lambda torch_npu, torch: profile
"""

Program = Callable[..., None]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run a program beside a wheel and an overlay made of the given files, with a profile; its assertions are the
    test's."""

    def run(body: str, *, wheel: dict[str, str], overlay: dict[str, str], profile: str) -> None:
        files = {"torch/__init__.py": "", "torch/version.py": '__version__ = "2.13.0"\n'}
        files |= {"torch_npu/__init__.py": "", "torch_npu/version.py": '__version__ = "2.13.0"\n'}
        files |= {f"torch_npu/{name}": text for name, text in wheel.items()}
        files |= {f"overlay/{name}": text for name, text in overlay.items()}
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        start = START.format(overlay=str(tmp_path / "overlay"), profile=profile)
        variables = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{IMPL}", "PATH": os.environ["PATH"]}
        command = [sys.executable, "-S", "-s", "-c", start + textwrap.dedent(body)]
        ended = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=HANG)
        assert ended.returncode == 0, ended.stderr

    return run


WHEEL = '''\
"""The wheel's own words."""
import sys
ran = [*globals().get("ran", ()), "wheel"]
def replaced(): return "wheel"
def kept(): return replaced()
'''
OURS = '''\
"""The overlay's."""
from __future__ import annotations
import torch_npu.thing as this
ran.append("ours")
wheels = this.replaced
def replaced(): return f"ours, not {wheels()}'s"
'''
ONE = {"wheel": {"thing.py": WHEEL}, "overlay": {"thing.py": OURS}, "profile": 'patched=["torch_npu.thing"]'}


def test_the_overlay_replaces_names_for_the_wheels_own_callers_too(program: Program) -> None:
    program(
        """
        from torch_npu.thing import kept, ran, replaced
        assert ran == ["wheel", "ours"]
        assert replaced() == kept() == "ours, not wheel's"
        assert replaced.__module__ == "torch_npu.thing"
        assert replaced.__code__.co_filename.endswith("overlay/thing.py")
        """,
        **ONE,
    )


def test_nothing_of_the_machinery_stays_on_the_module(program: Program) -> None:
    program(
        """
        import inspect, torch_npu.thing as thing
        for loader in (thing.__loader__, thing.__spec__.loader):
            assert type(loader).__name__ == "SourceFileLoader", loader
        assert thing.__doc__ == "The wheel's own words."
        assert thing.__file__.endswith("torch_npu/thing.py")
        assert inspect.getsource(thing).startswith('\"\"\"The wheel')
        assert not [name for name in sys.modules if name.startswith("torch_npu_lazy.overlay")]
        assert [event.subject for event in events.so_far() if event.kind == "patched"] == ["torch_npu.thing"]
        """,
        **ONE,
    )


def test_a_reload_patches_again(program: Program) -> None:
    program(
        """
        import torch_npu.thing as thing
        thing.replaced = None
        importlib.reload(thing)
        assert thing.ran == ["wheel", "ours", "wheel", "ours"]
        assert thing.replaced() == "ours, not wheel's"
        """,
        **ONE,
    )


def test_a_package_is_patched_by_its_init_file(program: Program) -> None:
    program(
        """
        import torch_npu.part.child
        assert torch_npu.part.name == "ours"
        """,
        wheel={"part/__init__.py": 'name = "wheel"\n', "part/child.py": ""},
        overlay={"part/__init__.py": 'name = "ours"\n'},
        profile='patched=["torch_npu.part"]',
    )


def test_torch_npu_itself_can_be_patched(program: Program) -> None:
    program(
        """
        import torch_npu
        assert torch_npu.name == "ours"
        """,
        wheel={"__init__.py": 'name = "wheel"\n'},
        overlay={"__init__.py": 'name = "ours"\n'},
        profile='patched=["torch_npu"]',
    )


def test_an_error_of_the_overlay_is_the_imports(program: Program) -> None:
    """Nothing half patched stays: a wheel with half of an overlay is neither."""
    program(
        """
        try:
            import torch_npu.thing
        except ZeroDivisionError as error:
            assert error.__traceback__.tb_next is not None
        else:
            raise AssertionError("the overlay's error was lost")
        assert "torch_npu.thing" not in sys.modules
        """,
        **{**ONE, "overlay": {"thing.py": "1 / 0\n"}},
    )


def test_a_look_has_no_effect_but_the_choice_of_the_profile(program: Program) -> None:
    program(
        """
        import importlib.util
        spec = importlib.util.find_spec("torch_npu.thing")
        assert spec.origin.endswith("torch_npu/thing.py")
        assert spec.loader.get_source("torch_npu.thing").startswith('\"\"\"The wheel')
        assert "torch_npu.thing" not in sys.modules
        """,
        **ONE,
    )


def test_what_the_profile_does_not_name_is_left_alone(program: Program) -> None:
    program(
        """
        import torch_npu.other
        assert torch_npu.other.ran == ["wheel"]
        assert type(torch_npu.other.__loader__).__name__ == "SourceFileLoader"
        assert not [event for event in events.so_far() if event.kind == "patched"]
        """,
        wheel={"other.py": WHEEL},
        overlay={"other.py": "1 / 0\n"},
        profile="",
    )


LAZY = {
    "wheel": {"heavy.py": WHEEL + "import colorsys\ncalled = []\ndef record(*values): called.append(values)\n"},
    "overlay": {"heavy.py": "early = True\nran = [*globals().get('ran', ()), 'ours']\n"},
}


def test_a_lazy_module_is_a_placeholder_until_its_module_of_torch_is_imported(program: Program) -> None:
    program(
        """
        import torch_npu.heavy as heavy
        from torch_npu.heavy import record
        assert record(1) is None
        assert "colorsys" not in sys.modules
        import quopri
        assert "colorsys" in sys.modules
        record(2)
        assert heavy.called == [(2,)]
        assert heavy.kept() == "wheel"
        """,
        **LAZY,
        profile='lazy={"torch_npu.heavy": Lazy(when="quopri", idle="record")}',
    )


def test_a_lazy_module_loads_by_a_public_name(program: Program) -> None:
    program(
        """
        import torch_npu.heavy as heavy
        assert not hasattr(heavy, "nonesuch") and "colorsys" not in sys.modules
        assert "kept" in dir(heavy)
        assert heavy.kept() == "wheel"
        assert "colorsys" in sys.modules
        """,
        **LAZY,
        profile="""lazy={"torch_npu.heavy": Lazy(public="kept")}""",
    )


def test_a_lazy_module_can_be_patched_once_it_is_real(program: Program) -> None:
    program(
        """
        import torch_npu.heavy as heavy
        assert not hasattr(heavy, "early")
        assert heavy.kept() == "wheel"
        assert heavy.ran == ["wheel", "ours"] and heavy.early
        """,
        **LAZY,
        profile="""patched=["torch_npu.heavy"], lazy={"torch_npu.heavy": Lazy(public="kept")}""",
    )


def test_a_lazy_module_patched_early_has_our_names_from_the_start_and_for_good(program: Program) -> None:
    program(
        """
        from torch_npu.heavy import replaced, state
        import torch_npu.heavy as heavy
        assert heavy.replaced is replaced and heavy.ran == ["ours"]
        assert "colorsys" not in sys.modules
        state.append("before")
        heavy.other = mine = lambda: "the user's"
        import quopri
        assert "colorsys" in sys.modules and heavy.ran == ["ours"]
        assert heavy.replaced is replaced and heavy.state == ["before"]
        assert heavy.kept() == replaced() == "ours"
        assert heavy.other is mine
        """,
        wheel={"heavy.py": LAZY["wheel"]["heavy.py"] + "other = None\n"},
        overlay={"heavy.py": 'ran = ["ours"]\nstate = []\ndef replaced(): return "ours"\nother = None\n'},
        profile="""
            patched=["torch_npu.heavy"],
            lazy={"torch_npu.heavy": Lazy(when="quopri", early=True)},
        """,
    )


PACKAGE = {
    "part/__init__.py": "import sys\nfrom .child import value\nfrom . import other\n__all__ = ['value']\n",
    "part/child.py": "import sys\nsys.bodies = getattr(sys, 'bodies', 0) + 1\nvalue = object()\n",
    "part/other.py": "",
    "part/light.py": "",
}
OPEN = """lazy={"torch_npu.part": Lazy(open=True, public="value", apart=["light"])}"""


@pytest.mark.parametrize(
    "use",
    [
        "value = torch_npu.part.value",
        "from torch_npu.part import value",
        "from torch_npu.part import *",
        "value = torch_npu.part.child.value",
        "from torch_npu.part.child import value",
        "import torch_npu.part.child; value = torch_npu.part.child.value",
        "from torch_npu.part import other, child; value = child.value",
        "value = importlib.import_module('torch_npu.part.child').value",
    ],
)
def test_an_open_package_loads_by_any_use_and_has_each_module_once(program: Program, use: str) -> None:
    program(
        f"""
        import torch_npu.part
        namespace = dict(torch_npu=torch_npu, importlib=importlib)
        exec({use!r}, namespace)
        child = sys.modules["torch_npu.part.child"]
        assert namespace["value"] is child.value is torch_npu.part.value
        assert torch_npu.part.child is child and sys.bodies == 1
        assert child.__spec__.name == "torch_npu.part.child" and not child.__spec__._initializing
        assert type(child.__spec__.loader).__name__ == type(child.__loader__).__name__ == "SourceFileLoader"
        importlib.reload(child)
        assert sys.bodies == 2
        """,
        wheel=PACKAGE,
        overlay={},
        profile=OPEN,
    )


def test_an_open_package_is_not_loaded_by_scans_and_for_what_stands_apart(program: Program) -> None:
    program(
        """
        import torch_npu.part, torch_npu.part.light
        from torch_npu.part import light
        assert torch_npu.part.light is light
        for name in ("__path__", "__spec__", "__file__", "__wrapped__", "__warningregistry__"):
            getattr(torch_npu.part, name, None)
        assert "value" in dir(torch_npu.part)
        assert "torch_npu.part.child" not in sys.modules
        assert not hasattr(torch_npu.part, "nothing")
        """,
        wheel=PACKAGE,
        overlay={},
        profile=OPEN,
    )


def test_import_statements_of_a_body_can_be_answered_otherwise(program: Program) -> None:
    program(
        """
        import torch_npu.light as light
        assert "torch_npu.part.child" not in sys.modules
        assert light.ours and type(light.__loader__).__name__ == "SourceFileLoader"
        assert light.here() is False
        import torch_npu.part
        assert light.value is torch_npu.part.value
        """,
        wheel={
            **PACKAGE,
            "light.py": """
                from torch_npu.part import value
                def here(): return isinstance(1, value)
            """,
        },
        overlay={"light.py": "ours = True\n"},
        profile="""patched=["torch_npu.light"], redirects={"torch_npu.light": {"torch_npu.part": ()}}""",
    )


def test_a_lazy_module_that_is_imported_after_its_time_is_an_ordinary_one(program: Program) -> None:
    program(
        """
        import quopri
        import torch_npu.heavy as heavy
        assert "colorsys" in sys.modules and heavy.ran == ["wheel", "ours"]
        heavy.record(1)
        assert heavy.called == [(1,)] and type(heavy) is type(sys)
        """,
        **LAZY,
        profile="""
            patched=["torch_npu.heavy"],
            lazy={"torch_npu.heavy": Lazy(when="quopri", idle="record")},
        """,
    )


def test_a_module_replaced_stands_for_the_wheels_whose_body_is_at_hand(program: Program) -> None:
    program(
        """
        import inspect, torch_npu.thing as thing
        assert thing.ran == ["ours"] and not hasattr(thing, "kept")
        assert thing.__file__.endswith("overlay/thing.py") and "here" in inspect.getsource(thing)
        thing.__spec__.loader_state.exec_module(thing)
        assert thing.ran == ["ours", "wheel"] and thing.kept() == "wheel"
        """,
        wheel={"thing.py": WHEEL},
        overlay={"thing.py": 'ran = ["ours"]  # here\n'},
        profile='replaced=["torch_npu.thing"]',
    )


def test_a_package_replaced_has_the_wheels_children(program: Program) -> None:
    program(
        """
        from torch_npu.part.child import name
        import torch_npu.part
        assert name == "wheel's child" and torch_npu.part.name == "ours"
        """,
        wheel={"part/__init__.py": 'name = "wheel"\n', "part/child.py": 'name = "wheel\'s child"\n'},
        overlay={"part/__init__.py": 'name = "ours"\n'},
        profile='replaced=["torch_npu.part"]',
    )


def test_a_module_that_the_wheel_lacks_is_added(program: Program) -> None:
    program(
        """
        import importlib.util
        assert importlib.util.find_spec("torch_npu.fresh").origin.endswith("overlay/fresh.py")
        assert "torch_npu.fresh" not in sys.modules
        from torch_npu import fresh
        assert fresh.__name__ == "torch_npu.fresh" and fresh.name == "ours"
        assert importlib.reload(fresh) is fresh
        """,
        wheel={},
        overlay={"fresh.py": 'name = "ours"\n'},
        profile='replaced=["torch_npu.fresh"]',
    )


def test_backends_that_the_wheel_does_not_announce_are_found_through_the_metadata(program: Program) -> None:
    program(
        """
        from importlib.metadata import distribution, entry_points
        (point,) = entry_points(group="torch_dynamo_backends")
        assert (point.name, point.value) == ("npu", "torch_npu.dynamo:backend")
        assert "torch" not in sys.modules and "torch_npu" not in sys.modules
        assert point.load() == "the backend"
        assert distribution("torch_npu_lazy").version == torch_npu_lazy.__version__
        """,
        wheel={"dynamo.py": 'backend = "the backend"\n'},
        overlay={},
        profile='backends={"npu": "torch_npu.dynamo:backend"}',
    )


def test_no_distribution_is_added_where_the_wheel_announces_itself(program: Program) -> None:
    program(
        """
        from importlib.metadata import distributions
        assert [each for each in distributions() if each.metadata["Name"] == "torch_npu_lazy"] == []
        """,
        **ONE,
    )


# A finder behind ours, in front of all others, that gives every module of torch_npu a loader of another kind.
LOADERS = """
import importlib.abc, importlib.machinery, os, types, zipfile

def body(spec, module):
    with open(spec.origin) as file:
        exec(compile(file.read(), spec.origin, "exec"), vars(module))

class exec_module_only:  # as pytest's, which rewrites assertions: no get_code, no get_filename
    def __init__(self, spec): self.spec = spec
    def create_module(self, spec): return None
    def exec_module(self, module): body(module.__spec__, module)

class makes_the_module(exec_module_only):
    def create_module(self, spec):
        made = types.ModuleType(spec.name)
        made.made_by_the_loader = True
        return made

class no_code(exec_module_only):
    def get_code(self, name): return None

class legacy:
    def __init__(self, spec):
        self.spec = importlib.machinery.ModuleSpec(spec.name, None, origin=spec.origin)
        self.spec.submodule_search_locations = spec.submodule_search_locations
    def load_module(self, name):
        module = sys.modules.setdefault(name, types.ModuleType(name))
        module.__file__, module.__loader__ = self.spec.origin, self
        module.__package__ = name.rpartition(".")[0]
        if self.spec.submodule_search_locations is not None:
            module.__path__, module.__package__ = self.spec.submodule_search_locations, name
        body(self.spec, module)
        return module

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != "torch_npu":
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path, target)
        if found is not None and found.loader is not None:
            found.loader = globals()[KIND](found)
        return found

def into_archive():
    place = next(path for path in sys.path if os.path.isdir(path + "/torch_npu"))
    with zipfile.ZipFile(place + "/archive.zip", "w") as archive:
        for folder, _, files in os.walk(place + "/torch_npu"):
            for name in files:
                if name != "version.py":
                    full = os.path.join(folder, name)
                    archive.write(full, os.path.relpath(full, place + "/torch_npu"))
    import torch_npu
    torch_npu.__path__[:] = [place + "/archive.zip"]

if KIND == "zip":
    into_archive()
else:
    sys.meta_path.insert(2, Finder())
"""


@pytest.mark.parametrize("kind", ["exec_module_only", "makes_the_module", "no_code", "legacy", "zip"])
@pytest.mark.filterwarnings("ignore")
def test_any_loader_that_python_accepts_will_do(program: Program, kind: str) -> None:
    program(
        f"KIND = {kind!r}\n{LOADERS}\n"
        + textwrap.dedent("""
        import warnings
        warnings.simplefilter("ignore")
        from torch_npu.thing import kept, ran, replaced
        assert ran == ["wheel", "ours"], ran
        assert replaced() == kept() == "ours, not wheel's"
        import torch_npu.redirected, torch_npu.both, torch_npu.swapped, torch_npu.slow
        assert torch_npu.redirected.found == "the other", torch_npu.redirected.found
        assert torch_npu.redirected.later() == "the one"
        assert torch_npu.both.found == "the other, ours", torch_npu.both.found
        assert torch_npu.swapped.name == "ours"
        assert torch_npu.swapped.theirs == "wheel"
        if KIND == "makes_the_module":
            assert torch_npu.thing.made_by_the_loader
        assert "loaded" not in dir(torch_npu.slow) or KIND == "makes_the_module"
        assert torch_npu.slow.name == "wheel"
        """),
        wheel={
            "__init__.py": "from torch_npu import slow\n" if kind != "zip" else "",
            "thing.py": WHEEL,
            "one.py": 'name = "the one"\n',
            "other.py": 'name = "the other"\n',
            "redirected.py": "from torch_npu.one import name as found\n"
            "def later():\n    from torch_npu.one import name\n    return name\n",
            "both.py": "from torch_npu.one import name as found\n",
            "swapped.py": 'name = "wheel"\n',
            "slow.py": 'name = "wheel"\nloaded = True\n',
        },
        overlay={
            "thing.py": OURS,
            "both.py": "found += ', ours'\n",
            "swapped.py": "import sys\nthis = sys.modules[__name__]\nthis.__spec__.loader_state.exec_module(this)\n"
            "theirs = name\nname = 'ours'\n",
        },
        profile="""
            patched=["torch_npu.thing", "torch_npu.both"], replaced=["torch_npu.swapped"],
            redirects={f"torch_npu.{name}": {"torch_npu.one": "torch_npu.other"} for name in ("redirected", "both")},
            lazy={"torch_npu.slow": Lazy(public="name")},
        """,
    )
