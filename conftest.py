"""Accepts `--forked`, which users of forked suites type out of habit, and makes it harmless.

Every case already runs in a fresh interpreter. pytest-forked would add nothing to that, and it breaks things: its 1.7.5
fails every test under pytest 9.2, drops failures of subtests under 9.0 and 9.1, and hangs together with pytest-timeout.
So the flag is registered here when that plugin is absent, and switched off again, whoever registered it, before any
plugin acts on it.
"""

from __future__ import annotations

import pytest

FORKED_PLUGIN = "pytest_forked"
ASKED_FOR_FORKED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    # Ask, do not try: a second registration of the flag surfaces as argparse.ArgumentError long after this hook.
    if not pluginmanager.has_plugin(FORKED_PLUGIN):
        parser.getgroup("conformance").addoption(
            "--forked",
            action="store_true",
            default=False,
            help="accepted and needless: every case runs in a fresh interpreter of its own",
        )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # xdist hands the controller's options to its workers, which ask again and find "no", which is as good.
    config.stash[ASKED_FOR_FORKED] = bool(config.option.forked)
    config.option.forked = False


def pytest_report_header(config: pytest.Config) -> str | None:
    if config.stash[ASKED_FOR_FORKED]:
        return "isolation: --forked accepted; each case runs in a fresh interpreter, no test is forked"
    return None
