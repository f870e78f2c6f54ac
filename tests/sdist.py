# SPDX-License-Identifier: BSD-3-Clause
"""Packages of others: their source distributions, and installed ones."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support import BUILD, absent, run, run_unchecked

LIMIT_S = 600  # the index may be slow
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def fetch(requirement: str) -> Path:
    """Return the unpacked source distribution of a package, given as ``NAME==VERSION``.

    It is downloaded once and kept in ``build/``. If the index cannot be reached, the
    calling test is skipped, or fails under ``CI=true``.
    """
    name = requirement.partition("==")[0]
    kept = BUILD / "sdist" / requirement
    if not kept.is_dir():
        with made_in_one_piece(kept) as folder:
            archives = folder / "archives"
            options = ("--no-deps", "--no-binary", name, "--dest", str(archives))
            download = ("download", *options, requirement)
            # Even with --no-deps, pip asks a package's build for its dependencies.
            # Mostly that takes only setuptools, which this environment has.
            quick = [*PIP, *download, "--no-build-isolation"]
            if run_unchecked(quick, limit_s=LIMIT_S)[0] != 0:
                _pip(*download)
            source = folder / "source"
            source.mkdir()
            unpack = ("tar", "--extract", "--directory", source, "--file")
            run([*unpack, next(archives.iterdir())], limit_s=LIMIT_S)
    return next((kept / "source").iterdir())


def install(requirements: Path) -> Path:
    """Return a folder for PYTHONPATH with the packages that a file lists.

    The file pins every package that the tests' environment lacks, since no
    dependencies are installed. The folder is kept in ``build/`` until the file
    changes. If installing fails, the test ends as with `fetch`.
    """
    content = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    kept = BUILD / "packages" / f"{sys.implementation.cache_tag}-{content}"
    if not kept.is_dir():
        with made_in_one_piece(kept) as folder:
            target = ("--no-compile", "--target", str(folder))
            _pip("install", "--no-deps", *target, "--requirement", str(requirements))
    return kept


@contextlib.contextmanager
def made_in_one_piece(kept: Path) -> Iterator[Path]:
    """Make a folder that appears only when complete, even if two processes make it."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as temporary:
        folder = Path(temporary) / "folder"
        folder.mkdir()
        yield folder
        with contextlib.suppress(OSError):  # another process made it first
            os.rename(folder, kept)  # noqa: PTH104 -- not into a folder


def _pip(*arguments: str) -> None:
    status, said = run_unchecked([*PIP, *arguments], limit_s=LIMIT_S)
    if status != 0:
        absent(f"pip {' '.join(arguments)} failed:\n{said}\n")
