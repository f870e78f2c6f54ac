# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures: the guest that the tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import support

from bench.guest import debian, kernel, machine
from bench.guest.guest import Died, Guest

NDEVICES = 8


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Exclude the wait for the kernel's build from the tests' time limits."""
    here = Path(__file__).parent
    limit_s = 120 * _machine(config).slowness
    for item in items:
        if here in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(limit_s, func_only=True))


@pytest.fixture(scope="session")
def linux(pytestconfig: pytest.Config) -> Path:
    """Return the guest's kernel once it has been built and has booted."""
    for tool in _machine(pytestconfig).tools:
        support.require_tool(tool)
    emulated = pytestconfig.getoption("--qemu")
    try:
        made = debian.debian() if emulated else kernel.kernel()
    except kernel.Unavailable as reason:
        support.absent(str(reason))
        raise
    try:
        with Guest(made, devices=0):
            return made
    except Died as reason:
        pytest.fail(f"the guest does not boot: {reason}", pytrace=False)


@pytest.fixture(scope="session")
def guest(linux: Path) -> Iterator[Guest]:
    """Return a guest with an RDMA device for each of eight ranks."""
    with Guest(linux, devices=NDEVICES) as guest:
        yield guest


def _machine(config: pytest.Config) -> type[machine.Machine]:
    return machine.Emulated if config.getoption("--qemu") else machine.UserMode
