# SPDX-License-Identifier: BSD-3-Clause
"""Options, hooks and fixtures for all tests."""

from __future__ import annotations

from typing import Any

import pytest
import support

# The rooms and files whose tests build C programs below build/.
BUILDERS = {"firmware", "mutants", "packages", "structure", "test_c.py", "test_fuzz.py"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose which tests run, and on what."""
    real = "run the tests of tests/devices on this machine's devices"
    parser.addoption("--gpu", action="store_true", help=real)
    parser.addoption("--long", action="store_true", help="run the long versions too")
    debian = "run the verbs tests on Debian's own kernel, emulated"
    parser.addoption("--qemu", action="store_true", help=debian)
    shared = "run the tests of tests/mpi in memory that the ranks share"
    parser.addoption("--shm", action="store_true", help=shared)
    slow = "run the slow tests, too, as CI does; --long includes them"
    parser.addoption("--slow", action="store_true", help=slow)
    emulated = "the name of emulated network adapters for the ranks of tests/mpi"
    parser.addoption("--adapter", default="", help=emulated)


def pytest_configure() -> None:
    """Choose the seed before any test needs it."""
    support.choose_seed()


def pytest_report_header() -> str:
    """Return a header line with the seed that repeats this run."""
    return f"MPIMCAST_TEST_SEED={support.choose_seed()}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Repeat the seed at the end, in case the header was left out."""
    terminalreporter.write_line(pytest_report_header())


def pytest_ignore_collect(
    collection_path: support.Path, config: pytest.Config
) -> bool | None:
    """Ignore tests/mpi except on ranks under mpirun, which test_mpi.py starts."""
    launched = config.getoption("--with-mpi")
    is_mpi = collection_path == support.ROOT / "tests/mpi"
    return True if is_mpi and not launched else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Return a scheduler that has the tests of a group run one by one.

    The tests in the guest are a group, and so are those that build C programs in the
    same folders. Each other file is a group of its own. Two workers begin with two
    groups, and a worker that has finished one takes the next.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            room = file.split("/")[1]
            if room in BUILDERS:
                return "builders"
            return "guest" if room == "verbs" else file

    return Groups(config, log)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Skip tests that are listed or marked unless an option includes them."""
    if config.getoption("--long"):
        return
    long = {*support.listed_tests("long")}
    slow = set() if config.getoption("--slow") else {*support.listed_tests("slow")}
    for item in items:
        names = {item.nodeid, item.nodeid.partition("[")[0]}
        if names & long or item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: needs --long"))
        elif names & slow:
            item.add_marker(pytest.mark.skip(reason="slow: needs --slow"))


@pytest.fixture(scope="session")
def seed() -> int:
    """Return the seed of this run, which is the same on all ranks."""
    return support.choose_seed()


@pytest.fixture(scope="session")
def long(request: pytest.FixtureRequest) -> bool:
    """Return whether ``--long`` was given."""
    return bool(request.config.getoption("--long"))
