# SPDX-License-Identifier: BSD-3-Clause
"""The guest's kernel, built once from Debian's source and kept in the user's cache.

``python3 bench/guest/kernel.py`` builds it if need be and prints its path. It
needs no root, and Python's own library alone, so that it can begin before there is
an environment.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGE = "linux-source-6.12"

_CONFIG = Path(__file__).with_name("kernel.config")
_BUILD = Path(__file__).with_name("build.sh")
_TOOLS = (
    *("apt-cache", "apt-get", "dpkg-deb", "tar", "xz"),
    *("make", "gcc", "ld", "strip", "flex", "bison", "bc"),
)
_LOG_LINES = 30
_DOWNLOAD_LIMIT_S = 600
_BUILD_LIMIT_S = 3600


class Unavailable(RuntimeError):
    """This machine lacks what it takes; the text says what."""


def kernel() -> Path:
    """Return the kernel's path; if it has not been built yet, build it.

    Of several processes at once one builds, and the others wait for it.

    Raises
    ------
    Unavailable
        If a tool or the source is not to be had.
    RuntimeError
        If the build fails, with the end of what it printed.
    """
    if platform.machine() != "x86_64":
        raise Unavailable("user-mode Linux runs on x86-64 alone")
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise Unavailable(f"the guest's kernel needs {', '.join(missing)}")
    cache = _cache()
    path = cache / f"guest-kernel-{_checksum(_source())}"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with _lock(cache / "guest-kernel.lock") as lock:
            if not path.exists():
                _make(path, lock)
    return path


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root).absolute() / "mpimcast"


def _source() -> str:
    """Return what identifies the source that apt would download."""
    done = subprocess.run(
        ["apt-cache", "show", "--no-all-versions", PACKAGE],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith("SHA256:"):
            return line
    raise Unavailable(f"apt knows no {PACKAGE}: `apt-get update`, on Debian 12 or 13")


def _checksum(source: str) -> str:
    parts = (source.encode(), _CONFIG.read_bytes(), _BUILD.read_bytes())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[int]:
    """Hold a lock; yield its descriptor, by which other processes hold it too."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _make(path: Path, lock: int) -> None:
    # One name for all builds, under the lock: the next build takes away what a
    # killed one has left.
    folder = path.with_name("guest-kernel-build")
    if " " in str(folder):
        raise Unavailable(f"no kernel can be built in {folder}, with blanks in it")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        fetch = ["apt-get", "-q", "download", PACKAGE]
        status = _run(fetch, folder, lock, _DOWNLOAD_LIMIT_S)
        if status != 0:
            raise Unavailable(f"{PACKAGE} cannot be downloaded:\n{_said(folder)}")
        (package,) = folder.glob("*.deb")
        build: list[str | Path]
        build = ["nice", "-n", "19", _BUILD, package, _CONFIG]
        status = _run(build, folder, lock, _BUILD_LIMIT_S)
        if status != 0:
            raise RuntimeError(f"the kernel's build failed:\n{_said(folder)}")
        (folder / "linux").rename(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: Sequence[str | Path], folder: Path, lock: int, limit_s: float) -> int:
    """Run a command, and return its exit status.

    It holds the lock, as do all its children: whatever becomes of this process, the
    next build begins after the last of them has ended.
    """
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[lock],
            start_new_session=True,
        )
        try:
            return process.wait(limit_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise


def _said(folder: Path) -> str:
    lines = (folder / "log").read_text(errors="replace").splitlines()
    return "\n".join(lines[-_LOG_LINES:])


if __name__ == "__main__":
    try:
        print(kernel())
    except RuntimeError as error:
        sys.exit(str(error))
