# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for the guest that the tests share."""

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
    """Limit the time of each test, but not the wait for the guest's kernel."""
    here = Path(__file__).parent
    limit_s = 120 * _machine(config).slowness
    for item in items:
        if here in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(limit_s, func_only=True))


@pytest.fixture(scope="session")
def linux(pytestconfig: pytest.Config) -> Path:
    """Return the guest's kernel, built if necessary and booted once as a check."""
    for tool in _machine(pytestconfig).tools:
        support.require_tool(tool)
    emulated = pytestconfig.getoption("--qemu")
    try:
        image = debian.debian() if emulated else kernel.kernel()
    except kernel.Unavailable as reason:
        support.skip_or_fail(str(reason))
        raise
    try:
        with Guest(image, devices=0):
            return image
    except Died as reason:
        pytest.fail(f"the guest does not boot: {reason}", pytrace=False)


@pytest.fixture(scope="session")
def guest(linux: Path) -> Iterator[Guest]:
    """Yield a guest with an RDMA device for each of eight ranks."""
    with Guest(linux, devices=NDEVICES) as guest:
        yield guest


def _machine(config: pytest.Config) -> type[machine.Machine]:
    """Return the kind of machine that runs the guest."""
    return machine.Emulated if config.getoption("--qemu") else machine.UserMode
