# SPDX-License-Identifier: BSD-3-Clause
"""Fetch the source distributions of other projects' packages, and install them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support import BUILD, run, run_unchecked, skip_or_fail

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
            # Even with --no-deps, pip runs a package's build backend to learn what the
            # package depends on. The backend is mostly setuptools, which this
            # environment has; pip must install any other in a separate environment.
            quick = [*PIP, *download, "--no-build-isolation"]
            if run_unchecked(quick, limit_s=LIMIT_S)[0] != 0:
                _pip(*download)
            source = folder / "source"
            source.mkdir()
            unpack = ("tar", "--extract", "--directory", source, "--file")
            run([*unpack, next(archives.iterdir())], limit_s=LIMIT_S)
    return next((kept / "source").iterdir())


def install(requirements: Path) -> Path:
    """Return a folder for ``PYTHONPATH`` with the packages that a file lists.

    Dependencies are not installed, so the file must also list the dependencies that
    this environment lacks. The folder is kept in ``build/``, and made anew when the
    file changes. If installing fails, the calling test is skipped, or fails under
    ``CI=true``.
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
    """Yield a folder to fill, and rename it to `kept` once it is complete.

    If another process has made `kept` in the meantime, that folder stays.
    """
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as temporary:
        folder = Path(temporary) / "folder"
        folder.mkdir()
        yield folder
        with contextlib.suppress(OSError):  # another process made it first
            os.rename(folder, kept)  # noqa: PTH104 -- must not move into a folder


def _pip(*arguments: str) -> None:
    """Run pip; if it fails, skip the calling test, or fail it under ``CI=true``."""
    status, said = run_unchecked([*PIP, *arguments], limit_s=LIMIT_S)
    if status != 0:
        skip_or_fail(f"pip {' '.join(arguments)} failed:\n{said}\n")
