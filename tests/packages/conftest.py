# SPDX-License-Identifier: BSD-3-Clause
"""The tree and the packages that the tests share."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import support
from checkout import copy


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout, without what was built in it."""
    return copy(tmp_path_factory.mktemp("source") / "mpimcast")


@pytest.fixture(scope="session")
def packages(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist and the x86-64 wheel, made as by `make wheel`."""
    for module in ("auditwheel", "ziglang"):
        if find_spec(module) is None:
            support.absent(f"{module} is not installed: pip install 'mpimcast[wheel]'")
    if not Path("/usr/include/rdma/rdma_cma.h").exists():
        support.absent("librdmacm-dev is not installed")
    folder = tmp_path_factory.mktemp("packages")
    script = tree / "ffi/packages/wheels.py"
    support.run([support.BIN / "python", script, folder, "x86_64"], limit_s=250)
    return folder


@pytest.fixture(scope="session")
def wheel(packages: Path) -> Path:
    """Return the wheel."""
    (path,) = packages.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def sdist(packages: Path) -> Path:
    """Return the sdist."""
    (path,) = packages.glob("*.tar.gz")
    return path
