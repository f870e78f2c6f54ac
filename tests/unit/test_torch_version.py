# SPDX-License-Identifier: BSD-3-Clause
"""mpimcast.torch refuses versions of PyTorch that it was not made for."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def version() -> ModuleType:
    """Return the module that decides, without its package, which needs torch."""
    package = find_spec("mpimcast")
    assert package is not None
    folders = map(Path, package.submodule_search_locations or ())
    (path,) = (
        each / "torch/version.py"
        for each in folders
        if (each / "torch/version.py").exists()
    )
    spec = spec_from_file_location("version", path)
    assert isinstance(spec, ModuleSpec)
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("found", ["2.13.0", "2.13.1+cpu", "2.13.0a0+git1234"])
def test_supported(version: ModuleType, found: str) -> None:
    """Every build of the supported version is taken."""
    version.check(found)


@pytest.mark.parametrize("found", ["2.9.0", "2.12.1+cpu", "2.14.0", "2.130.0", "3.0"])
def test_refused(version: ModuleType, found: str) -> None:
    """Every other version is refused, in words that say what to install."""
    with pytest.raises(
        ImportError, match=f"PyTorch 2.13, and this is {found}".replace("+", r"\+")
    ):
        version.check(found)


def test_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch, the import itself says what to install."""

    def find(_name: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "version", find)
    for name in [each for each in sys.modules if each.startswith("mpimcast.torch")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(
        ImportError, match=r"not installed: pip install 'torch==2\.13\."
    ):
        importlib.import_module("mpimcast.torch")
