# SPDX-License-Identifier: BSD-3-Clause
"""Copies of the checkout, and environments to install it into."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from support import ROOT, run

_MADE_HERE = (".git", ".venv*", ".*_cache", ".hypothesis", "build", "__pycache__")


def copy(folder: Path, *, without: Sequence[str] = ()) -> Path:
    """Copy the checkout into a new folder and return the copy.

    Parameters
    ----------
    folder
        The new folder.
    without
        Names of further files and folders to leave out.
    """
    left_out = shutil.ignore_patterns(*_MADE_HERE, *without)
    return Path(shutil.copytree(ROOT, folder, ignore=left_out))


def make_environment(folder: Path, python: str | Path = sys.executable) -> Path:
    """Make an environment that has only pip, and return the folder of its programs.

    It is made with virtualenv, which supplies pip; Debian's Pythons lack it.
    """
    make = [sys.executable, "-m", "virtualenv", "--quiet", "--no-periodic-update"]
    run([*make, "--python", python, folder], limit_s=100)
    return folder / "bin"


def install(programs: Path, *arguments: str | Path) -> None:
    """Install packages with the pip of an environment."""
    pip = [programs / "python", "-m", "pip", "--disable-pip-version-check", "install"]
    run([*pip, "--quiet", *arguments], limit_s=400)
