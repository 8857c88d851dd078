"""What simnpu.environ() puts around a program that compiles kernels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest
from deadlines import HANG

import simnpu
from harness.inside import collecting
from simnpu import build as building
from simnpu import toolchain
from simnpu.toolchain import surroundings

WITH_TRITON = pytest.mark.skipif(
    surroundings.version_of("triton-ascend") is None, reason="unsupported: needs triton-ascend; run `make setup`"
)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """A kernel compiler that is there, or lacks what `lacks` says."""
    fake = types.SimpleNamespace(lacks=None, built=0)

    def build(progress: object = None) -> Path:  # noqa: ARG001 - the interface
        fake.built += 1
        return tmp_path / "compiler"

    module = types.ModuleType("simnpu.toolchain.build")
    module.build = build  # type: ignore[attr-defined]
    module.missing = lambda: fake.lacks  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "simnpu.toolchain.build", module)
    monkeypatch.setattr(toolchain, "build", module, raising=False)
    fake.module, fake.bin = module, str(tmp_path / "compiler" / "bin")
    return fake


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The Triton distributions that are installed, as far as the code under test can tell."""
    there = {"triton-ascend": "3.2.0"}
    monkeypatch.setattr(surroundings, "version_of", there.get)
    return there


def test_the_compilers_come_first_and_the_rest_of_a_path_stays(
    compiler: types.SimpleNamespace, installed: dict[str, str]
) -> None:
    environment = {"PATH": f"/a::{compiler.bin}:/b", "PYTHONPATH": "/c"}
    surroundings.activate(environment)
    surroundings.activate(environment)
    cxx = environment["PATH"].split(":")[1]
    assert environment["PATH"] == f"{compiler.bin}:{cxx}:/a::/b"
    assert (Path(cxx) / "clang++").is_file()
    assert environment["SIMNPU_CACHE"] == str(building.cache_root())
    assert environment["PYTHONPATH"] == f"{surroundings.PYTHON}:/c"
    assert installed
    empty: dict[str, str] = {}
    surroundings.activate(empty)
    assert empty == {
        "PATH": f"{compiler.bin}:{cxx}:{os.defpath}",
        "PYTHONPATH": str(surroundings.PYTHON),
        "SIMNPU_CACHE": str(building.cache_root()),
    }


@pytest.mark.parametrize(
    ("path", "made"),
    [
        ("", "/new"),  # an empty value has no part, and gets none
        ("/a", "/new:/a"),
        ("/a:/new:/b", "/new:/a:/b"),
        ("/new", "/new"),
        # The working directory, where somebody means it.
        (":/a", "/new::/a"),
        ("/a:", "/new:/a:"),
        ("/a::/b", "/new:/a::/b"),
    ],
)
def test_the_parts_of_a_search_path_stay_as_they_are(path: str, made: str) -> None:
    assert surroundings.put_first("/new", path) == made
    assert surroundings.put_first("/new", made) == made


@pytest.mark.parametrize(
    ("there", "lacks", "said"),
    [
        ({}, None, "triton-ascend is not installed; run `make setup`"),
        ({"triton": "3.5.0"}, None, "community triton 3.5.0 is installed in the place of triton-ascend"),
        ({"triton-ascend": "3.2.0"}, "MLIR 19 is missing; run this", "MLIR 19 is missing; run this"),
    ],
)
def test_what_is_missing_is_said_and_changes_nothing(
    compiler: types.SimpleNamespace, installed: dict[str, str], there: dict[str, str], lacks: str | None, said: str
) -> None:
    installed.clear()
    installed.update(there)
    compiler.lacks = lacks
    told = surroundings.missing()
    assert told is not None
    assert said in told
    environment = {"PATH": "/a"}
    surroundings.activate(environment)
    assert environment == {"PATH": "/a"}
    assert compiler.built == 0


@pytest.mark.usefixtures("installed")
def test_environ_has_it_and_says_so_when_the_compiler_does_not_build(
    compiler: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, last = simnpu.environ({"PATH": "/a"})["PATH"].split(":")
    assert (first, last) == (compiler.bin, "/a")

    def fails(progress: object = None) -> Path:  # noqa: ARG001 - the interface
        raise building.BuildError("the kernel compiler does not build")

    monkeypatch.setattr(compiler.module, "build", fails)
    with pytest.raises(building.BuildError, match="the kernel compiler does not build"):
        simnpu.environ({"PATH": "/a"})


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=HANG, check=False
    )


def sitecustomized(*directories: Path) -> str:
    return os.pathsep.join(map(str, [surroundings.PYTHON, *directories]))


def test_an_interpreter_starts_with_the_same_modules_but_this_one() -> None:
    code = "import sys; print(sorted(sys.modules))"
    without = python("-c", code)
    with_it = python("-c", code, PYTHONPATH=sitecustomized())
    assert with_it.stderr == ""
    assert set(eval(with_it.stdout)) - set(eval(without.stdout)) <= {"sitecustomize"}


def test_the_next_sitecustomize_runs_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nprint('next', __file__, sys.modules[__name__].__file__)\n")
    done = python("-c", "import sitecustomize; print(sitecustomize.__file__)", PYTHONPATH=sitecustomized(tmp_path))
    file = str(tmp_path / "sitecustomize.py")
    assert (done.stdout, done.stderr) == (f"next {file} {file}\n{file}\n", "")


@pytest.mark.parametrize("body", ["raise ValueError('mine')", "import no_such_module", "raise SystemExit(3)"])
def test_the_next_sitecustomize_fails_as_without_this_one(tmp_path: Path, body: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(body + "\n")
    code = "import sys; print('sitecustomize' in sys.modules)"
    alone = python("-c", code, PYTHONPATH=str(tmp_path))
    behind = python("-c", code, PYTHONPATH=sitecustomized(tmp_path))
    assert "mine" in alone.stderr or "no_such_module" in alone.stderr or alone.stderr.endswith("SystemExit: 3\n")
    # Where the interpreter shows a traceback, that of the importing module stands in it.
    ends = [(done.returncode, done.stdout, done.stderr.splitlines()[-1]) for done in (behind, alone)]
    assert ends[0] == ends[1]


WALKS = "import pkgutil\nnames = [one.name for one in pkgutil.iter_modules(__path__)]\n"
PACKAGE = {
    "triton/__init__.py": "",
    "triton/language/__init__.py": "",
    "triton/language/extra/__init__.py": WALKS,
    "triton/language/extra/ascend/__init__.py": "",
}


def packages(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_cann_is_added_where_the_wheel_has_none_and_only_there(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import sys, triton.language.extra as extra, importlib.util
        print(extra.names, importlib.util.find_spec("triton.language.extra.cann").origin)
    """)
    lacks = packages(tmp_path / "lacks", PACKAGE)
    done = python("-c", code, PYTHONPATH=sitecustomized(lacks))
    ours = Path(surroundings.__file__).parent / "extra" / "cann" / "__init__.py"
    assert done.stdout == f"['ascend', 'cann'] {ours}\n", done.stderr
    has = packages(tmp_path / "has", PACKAGE | {"triton/language/extra/cann/__init__.py": ""})
    done = python("-c", code, PYTHONPATH=sitecustomized(has))
    assert done.stdout == f"['ascend', 'cann'] {has / 'triton/language/extra/cann/__init__.py'}\n", done.stderr


def test_without_triton_nothing_is_found() -> None:
    code = textwrap.dedent("""
        import importlib.util, sys
        sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry]
        assert importlib.util.find_spec("triton") is None
        try:
            import triton.language.extra
        except ModuleNotFoundError as error:
            print(error.name)
    """)
    assert python("-c", code, PYTHONPATH=sitecustomized()).stdout == "triton\n"


@WITH_TRITON
def test_triton_ascend_offers_what_inductor_names() -> None:
    code = textwrap.dedent("""
        import triton, triton.language as tl
        from triton.language.extra.cann import libdevice
        assert libdevice is tl.extra.cann.libdevice
        from triton.language.extra.cann.extension import extract_slice
        import triton.language.extra.cann.extension as extension
        assert extract_slice is tl.extract_slice
        extension.multibuffer, extension.compile_hint, extension.gather_out_to_ub, extension.index_put
        names = {name for name in dir(tl.extra.ascend.libdevice) if not name.startswith("_")}
        names |= set('''acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh cyl_bessel_i0 erf erfc erfcx
            erfinv exp exp2 expm1 fast_tanhf floor fma fmod hypot ilogb isinf isnan ldexp lgamma llrint log log10 log1p
            log2 mul_rn nearbyint nextafter pow rsqrt signbit sin sinh sqrt tan tanh trunc abs'''.split())
        print([name for name in sorted(names) if not hasattr(libdevice, name)])
        for home, name in ((libdevice, "j0"), (extension, "custom")):
            try:
                getattr(home, name)
            except AttributeError as error:
                print(error)
    """)
    done = python("-c", code, PYTHONPATH=sitecustomized())
    lacking, function, operation = done.stdout.splitlines() or [done.stderr, "", ""]
    assert lacking == "[]"
    assert function.startswith("triton.language.extra.cann.libdevice has no j0: ")
    assert operation.startswith("triton.language.extra.cann.extension has no custom: ")


@pytest.mark.skipif(surroundings.missing() is not None, reason=f"unsupported: {surroundings.missing()}")
def test_the_added_functions_are_pytorchs(tmp_path: Path) -> None:
    environment = simnpu.environ() | {"TRITON_CACHE_DIR": str(tmp_path), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    worker = Path(__file__).with_name("cann_functions_worker.py")
    done = subprocess.run(
        [sys.executable, collecting.__file__, str(worker)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    off = json.loads(done.stdout)
    limits = {"erfc": 5e-6, "erfcx": 5e-6, "tanh": 5e-7, "fmod": 0, "mul_rn": 0, "llrint": 0}
    assert {name for name, limit in limits.items() if off[name] > limit} == set(), off


def test_a_first_kernel_runs_once_and_one_that_does_not_is_told(
    compiler: types.SimpleNamespace, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SIMNPU_CACHE", str(tmp_path / "cache"))
    kernel = tmp_path / "kernel.py"
    monkeypatch.setattr(surroundings, "FIRST_KERNEL", kernel)
    environment: dict[str, str] = {}
    surroundings.activate(environment)
    told: list[str] = []
    kernel.write_text("raise SystemExit('no kernel today')\n")
    for _ in range(2):
        surroundings.prepare(environment, told.append)
        assert told[-1].endswith("no kernel today")
        assert str(kernel) in told[-1]
    kernel.write_text(f"import os\nassert os.environ['TRITON_CACHE_DIR'] != {os.environ.get('TRITON_CACHE_DIR')!r}\n")
    surroundings.prepare(environment, told.append)
    count = len(told)
    kernel.write_text("raise SystemExit('it ran again')\n")
    surroundings.prepare(environment, told.append)
    installed.clear()
    surroundings.prepare({}, told.append)
    assert len(told) == count
    assert compiler.built == 1
