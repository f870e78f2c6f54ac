# SPDX-License-Identifier: BSD-3-Clause
"""Refuses versions of PyTorch that this package was not made for.

What a process group must define, and what FSDP calls on it, differs between versions of
PyTorch, and much of it has no promise of staying. A version that nobody has tried may
fail late, or train on wrong numbers.
"""

from __future__ import annotations

from importlib import metadata

# The version that the tests run with.
SUPPORTED = "2.13"

_INSTALL = f"pip install 'torch=={SUPPORTED}.*'"


def require() -> None:
    """Raise ImportError unless this process has the version of torch that is supported.

    This reads the version that is installed, and does not import torch.
    """
    try:
        found = metadata.version("torch")
    except metadata.PackageNotFoundError:
        raise ImportError(
            f"mpimcast.torch needs PyTorch, which is not installed: {_INSTALL}"
        ) from None
    check(found)


def check(found: str) -> None:
    """Raise ImportError unless the version `found` is supported."""
    if found.split(".")[:2] != SUPPORTED.split("."):
        raise ImportError(
            f"mpimcast.torch was made for PyTorch {SUPPORTED}, and this is {found}, "
            "whose process groups and FSDP may call collectives in other ways: "
            f"{_INSTALL}, or use mpimcast.Intracomm without mpimcast.torch"
        )
