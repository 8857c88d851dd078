"""A case that says which Triton there is finds it so in its interpreter and in those that it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from deadlines import HANG

ROOT = Path(__file__).parents[2]
# What a program can ask about a package.
ASK = """
import importlib.metadata, importlib.util, json, sys
found = {"spec": importlib.util.find_spec("triton") is not None}
try:
    import triton
    found["import"] = triton.__version__
except ModuleNotFoundError as error:
    found["import"] = f"{error.name} {error}"
for name in ("triton", "triton-ascend", "triton_ascend"):
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        found[name] = None
names = {(one.metadata["Name"] or "").lower() for one in importlib.metadata.distributions()}
found["listed"] = sorted(name for name in names if name.startswith("triton"))
found["others"] = "pytest" in names
print(json.dumps(found))
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A directory in which a triton-ascend is installed."""
    (tmp_path / "site" / "triton").mkdir(parents=True)
    (tmp_path / "site" / "triton" / "__init__.py").write_text("__version__ = '3.2.0'\n")
    info = tmp_path / "site" / "triton_ascend-3.2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: triton-ascend\nVersion: 3.2.0\n")
    return tmp_path / "site"


def run(place: Path, body: str, *more: Path) -> subprocess.CompletedProcess[str]:
    case = place.parent / "a" / "case.py"
    case.parent.mkdir(exist_ok=True)
    header = '"""A rule."""\n# /// script\n# [tool.conformance]\n# level = "must"\n# ///\n'
    case.write_text(header + "from harness import probe\n" + textwrap.dedent(body))
    paths = os.pathsep.join(map(str, [*more, place, ROOT]))
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "HOME": str(place.parent)}
    return subprocess.run(
        [sys.executable, case],
        env=env,
        cwd=place.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
    )


ABSENT = {
    "spec": False,
    "import": "triton No module named 'triton'",
    "triton": None,
    "triton-ascend": None,
    "triton_ascend": None,
    "listed": [],
    "others": True,
}
COMMUNITY = ABSENT | {"spec": True, "import": "3.5.0", "triton": "3.5.0", "listed": ["triton"]}
HERE = {"spec": True, "import": "3.2.0", "triton-ascend": "3.2.0", "triton_ascend": "3.2.0"}
INSTALLED = ABSENT | HERE | {"listed": ["triton-ascend"]}


@pytest.mark.parametrize(
    ("which", "expected"), [("absent", ABSENT), ("community", COMMUNITY), ("installed", INSTALLED)]
)
def test_the_case_and_what_it_starts_see_what_it_said(installed: Path, which: str, expected: dict[str, object]) -> None:
    body = f"""
        import sys
        before = list(map(id, sys.meta_path))
        probe.triton("{which}")
        probe.equal(list(map(id, sys.meta_path)), before, "sys.meta_path")
        ask = {ASK!r}
        exec(ask)
        print(probe.python(ask).stdout)
        print(probe.python("import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])", ask).stdout)
    """
    done = run(installed, body)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert answers == [expected] * 3


def test_another_sitecustomize_still_runs_once(installed: Path) -> None:
    other = installed.parent / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import os\nos.write(1, b'other\\n')\n")
    simulator = ROOT / "simnpu" / "toolchain" / "python"
    done = run(installed, 'probe.triton("absent")\nprobe.check(True, "x")\nprobe.python("")', simulator, other)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines().count("other") == 1  # the nested one's goes to its own pipe
    code = 'print("triton:", __import__("importlib.util").util.find_spec("triton"))'
    done = run(installed, f'probe.triton("absent")\nprint(probe.python({code!r}).stdout)', simulator, other)
    assert "other\ntriton: None" in done.stdout


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('probe.triton("elsewhere")', "there is no Triton 'elsewhere'; known are absent, community and installed"),
        ('import triton\nprobe.triton("absent")', "triton is loaded already"),
        ('probe.triton("absent")\nprobe.triton("community")', "which Triton there is can be said once"),
    ],
)
def test_wrong_use_is_an_error_of_the_case(installed: Path, body: str, said: str) -> None:
    done = run(installed, body)
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize(
    ("who", "passes"), [("nobody", True), ("torch/dynamo.py", True), ("torch_npu/__init__.py", False), ("case", False)]
)
def test_whether_a_package_was_left_to_torch(installed: Path, who: str, passes: bool) -> None:
    for name in ("torch", "torch_npu"):
        (installed / name).mkdir()
        (installed / name / "__init__.py").write_text("")
    (installed / "torch" / "dynamo.py").write_text("")
    (installed / "torch" / "asks.py").write_text("def ask():\n    import triton\n")
    asks = "from torch.asks import ask\nask()\n"
    if "/" in who:
        (installed / who).write_text(asks)
    body = "import torch.asks\nimport torch_npu\nimport torch.dynamo\n" + (asks if who == "case" else "")
    done = run(installed, body + 'probe.modules.left_to_torch("triton")\n')
    assert (done.returncode == 0) == passes, done.stderr
    assert ("triton was loaded, and not by torch alone" in done.stdout + done.stderr) != passes
