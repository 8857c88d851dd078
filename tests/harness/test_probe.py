"""The probe's checks say what they found, in a case by hand as under the runner."""

from __future__ import annotations

import json

import pytest
from fakes import Run, Write, by_hand


def test_a_case_runs_by_hand(write: Write) -> None:
    path = write('probe.equal(probe.param("order"), "b", "the order")\nprobe.note("answer", 42)')
    good, bad = by_hand(path, "order=b"), by_hand(path, "order=a")
    assert good.returncode == 0
    assert good.stdout.splitlines() == [
        "area/topic/case[order=b]: A rule for this test.",
        "ok    the order is equal",
        "note  answer = 42",
        "1 checks, 0 failed",
    ]
    assert bad.returncode == 1
    assert "FAIL  the order differs\n  expected: 'b'\n  found:    'a'\n" in bad.stdout
    assert "CheckFailed" in bad.stderr


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ("try:\n    probe.check(False, 'it holds')\nexcept Exception:\n    pass", 1, "1 checks, 1 failed"),
        ("pass", 1, "0 checks, 0 failed"),
        ("probe.unsupported('no such thing')", 1, "unsupported: no such thing"),
        (
            "import os\nif os.fork() == 0:\n    raise SystemExit\nos.wait()\nprobe.check(True, 'it holds')",
            0,
            "1 checks, 0",
        ),
        (
            "probe.check('sibling' not in __import__('sys').path[0], 'the folder is not searched')",
            0,
            "1 checks, 0 failed",
        ),
    ],
)
def test_by_hand_nothing_passes_by_omission(write: Write, body: str, code: int, text: str) -> None:
    done = by_hand(write(body), "order=a")
    assert (done.returncode, text in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
    assert done.stdout.count(" failed") <= 1


def test_by_hand_a_missing_parameter_is_explained(write: Write) -> None:
    done = by_hand(write("probe.check(True, 'it holds')"))
    assert done.returncode == 1
    assert done.stderr == "case.py: say which order: order=a order=b\n"


def test_by_hand_a_bad_header_is_explained(write: Write) -> None:
    path = write("")
    path.write_text(path.read_text().replace('"must"', '"may"'))
    done = by_hand(path, "order=a")
    assert done.returncode == 1
    assert done.stderr == f"{path}:4: level 'may' is neither 'must' nor 'should'\n"


@pytest.mark.parametrize(
    ("check", "message", "expected", "found"),
    [
        ("probe.check(1 > 2, 'one is more than two', one=1)", "one is more than two", None, "one = 1"),
        ("probe.equal({1: 2}, {1: 3}, 'the table')", "the table differs", "{1: 3}", "{1: 2}"),
        ("probe.close(1.0, 1.1, 'the value')", "the value is not close", "1.1 ±*", "1.0"),
        ("probe.close([1.0, 2.0], [1.0, 2.5], 'the list')", "the list is not close", "*[1] 2.5 ±*", "2.0"),
        ("probe.close({'a': 1.0}, {'b': 1.0}, 'the table')", "the table is not close", "keys ['b']", "['a']"),
        ("probe.close(float('nan'), float('nan'), 'it')", "it is not close", "nan*", "nan"),
        ("probe.modules.present('wave')", "wave is not loaded", "wave in sys.modules", "never loaded"),
        ("probe.libraries.present('libnonesuch')", "libnonesuch is not mapped", "a library libnonesuch*", "none"),
        ("with probe.raises(KeyError): pass", "KeyError is raised", "KeyError", "no exception"),
        ("with probe.raises(KeyError): 1 / 0", "KeyError is raised", "KeyError", "ZeroDivisionError: *"),
        ("with probe.raises(KeyError, 'b'): {}['a']", "KeyError matching 'b' is raised", "KeyError*", "KeyError: 'a'"),
        ("probe.python('import sys; sys.exit(3)')", "the nested interpreter ends well", "exit code 0", "exit code 3*"),
        ("probe.python('input()', timeout=60)", "the nested interpreter ends well", "exit code 0", "*EOFError*"),
        (
            "probe.python('import threading; threading.Event().wait()', timeout=0.2)",
            "the nested interpreter ends within 0.2 s",
            "an end",
            "it still ran*",
        ),
    ],
)
def test_a_failed_check_says_what_it_found(
    run: Run, check: str, message: str, expected: str | None, found: str | None
) -> None:
    result = run(check)
    assert result["outcome"] == "fail", result
    assert result["failure"]["message"] == message
    for key, wanted in (("expected", expected), ("found", found)):
        text = result["failure"][key]
        assert (text is None) if wanted is None else _like(text, wanted), (key, text)


def _like(text: str, pattern: str) -> bool:
    import fnmatch

    return fnmatch.fnmatchcase(
        text.replace("[", "<").replace("]", ">"), pattern.replace("[", "<").replace("]", ">") + "*"
    )


def test_checks_that_hold_pass(run: Run) -> None:
    result = run(
        """
        import sys
        thing = object()
        probe.check([0], "a list with something in it counts as true")
        probe.same(thing, thing, "the thing")
        probe.equal([1], [1], "the list")
        probe.close([1.0, {"a": 2}], [1.0 + 1e-9, {"a": 2}], "the tree")
        with probe.raises(ZeroDivisionError, "division") as caught:
            1 / 0
        probe.equal(str(caught.value), "division by zero", "the text")
        before = probe.modules.snapshot()
        import wave
        probe.check("wave" in probe.modules.new_since(before), "wave is new")
        del sys.modules["wave"]
        probe.check("wave" in probe.modules.new_since(before), "wave is remembered")
        probe.modules.absent("sndhdr.nonesuch", "torch")
        probe.libraries.present("libc")
        probe.libraries.absent("libnonesuch")
        done = probe.python("import sys; print(sys.argv[1:], file=sys.stderr); print(1)", "a", "b")
        probe.equal((done.stdout, done.stderr, done.returncode), ("1\\n", "['a', 'b']\\n", 0), "the nested interpreter")
        probe.equal(probe.python("import os; os.kill(os.getpid(), 9)", check=False).returncode, -9, "its signal")
        """
    )
    assert result["outcome"] == "pass", result
    assert result["checks"] == 14


def test_an_extension_module_is_seen_when_loaded_by_name(run: Run) -> None:
    # importlib.import_module raises no "import" event for Python modules, and an extension has no body.
    result = run(
        """
        import importlib, sys
        importlib.import_module("_zoneinfo" if "_zoneinfo" not in sys.modules else "_lsprof")
        sys.modules.pop("_zoneinfo", None)
        probe.modules.absent("_zoneinfo")
        """
    )
    assert result["outcome"] == "fail", result
    assert result["failure"]["import_stack"][-1].endswith("case.py:11 in <module>")


def test_an_import_that_fails_is_no_load(run: Run) -> None:
    result = run(
        """
        try:
            import nonesuch
        except ImportError:
            pass
        probe.modules.absent("nonesuch")
        """
    )
    assert result["outcome"] == "pass", result


def test_a_nested_interpreter_has_the_same_subject(run: Run) -> None:
    result = run(
        """
        import json, os
        code = "import torch_npu, json, os; found = os.environ; " \\
            "print(json.dumps([torch_npu.__file__, found['EXTRA'], 'HOME' in found]))"
        done = probe.python(code, env={"EXTRA": "1", "HOME": None})
        file, extra, home = json.loads(done.stdout)
        probe.check("/honest/torch_npu/" in file, "the fake is found", file=file)
        probe.equal((extra, home), ("1", False), "environment")
        """
    )
    assert result["outcome"] == "pass", result


def test_the_case_is_a_program_like_any_other(run: Run) -> None:
    result = run(
        """
        import multiprocessing, os, sys

        def double(value):
            return 2 * value

        if __name__ == "__main__":
            import __main__
            probe.same(__main__.double, double, "the function in __main__")
            probe.equal(sys.argv[1:], ["order=a"], "arguments")
            probe.check("HARNESS_RESULT_FD" not in os.environ, "the result file is out of sight")
            probe.check(os.path.dirname(__file__) not in sys.path, "the case's folder is not searched")
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    probe.equal(pool.map(double, [21]), [42], method)
        """
    )
    assert result["outcome"] == "pass", result


def test_results_survive_a_hard_end(run: Run) -> None:
    result = run("probe.check(True, 'it holds')\nprobe.note('step', 1)\nimport os\nos._exit(5)")
    assert (result["outcome"], result["exit_code"], result["checks"]) == ("exit", 5, 1)
    assert json.dumps(result["notes"]) == '{"step": 1}'


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_case_by_hand_without_a_device_runtime_is_told_how_to_get_one(write: Write, wrapped: bool) -> None:
    missing = "ImportError('libhccl.so: cannot open shared object file: No such file or directory')"
    raised = f"raise RuntimeError('Failed to load the backend') from {missing}" if wrapped else f"raise {missing}"
    path = write(f"probe.param('order')\n{raised}")
    ended = by_hand(path, "order=b")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "libhccl.so is not in reach: without a device runtime there is no NPU. On the simulated one: python -m simnpu "
        f"run -- python {path} order=b. On a real one: source CANN's set_env.sh first."
    )
    other = by_hand(write("probe.param('order')\nraise ImportError('no module')"), "order=b")
    assert "simnpu" not in other.stderr
