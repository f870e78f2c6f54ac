# SPDX-License-Identifier: BSD-3-Clause
"""The guest that the tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import support

from bench.guest import kernel
from bench.guest.guest import TOOLS, Guest

NDEVICES = 8


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the wait for the kernel's build out of the tests' time limits."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(120, func_only=True))


@pytest.fixture(scope="session")
def linux() -> Path:
    """Return the guest's kernel, and wait until it has been built."""
    for tool in TOOLS:
        support.require_tool(tool)
    try:
        return kernel.kernel()
    except kernel.Unavailable as reason:
        support.absent(str(reason))
        raise


@pytest.fixture(scope="session")
def guest(linux: Path) -> Iterator[Guest]:
    """Return a guest with an RDMA device for each of eight ranks."""
    with Guest(linux, devices=NDEVICES) as guest:
        yield guest
