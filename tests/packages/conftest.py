# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for the tree and the packages that the tests share."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import support
from checkout import copy


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout, without its build outputs."""
    return copy(tmp_path_factory.mktemp("source") / "mpimcast")


@pytest.fixture(scope="session")
def packages(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist and x86-64 wheel, made as by `make wheel`."""
    for module in ("auditwheel", "ziglang"):
        if find_spec(module) is None:
            support.skip_or_fail(
                f"{module} is not installed: pip install 'mpimcast[wheel]'"
            )
    if not Path("/usr/include/rdma/rdma_cma.h").exists():
        support.skip_or_fail("librdmacm-dev is not installed")
    folder = tmp_path_factory.mktemp("packages")
    script = tree / "ffi/packages/wheels.py"
    support.run([support.BIN / "python", script, folder, "x86_64"], limit_s=250)
    return folder


@pytest.fixture(scope="session")
def wheel(packages: Path) -> Path:
    """Return the path of the wheel."""
    (path,) = packages.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def sdist(packages: Path) -> Path:
    """Return the path of the sdist."""
    (path,) = packages.glob("*.tar.gz")
    return path
