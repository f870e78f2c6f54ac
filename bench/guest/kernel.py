# SPDX-License-Identifier: BSD-3-Clause
"""Build the guest's kernel from Debian's source, and keep it in the user's cache.

``python3 bench/guest/kernel.py`` builds the kernel if the cache has none, and prints
its path. It needs no root. It imports only Python's standard library, so that it can
run before there is a virtual environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import errno
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

# The kernel has room for this many bytes of a processor's registers. A processor with
# AMX has 11,008.
REGISTER_BYTES = 11264

_CONFIG = Path(__file__).with_name("kernel.config")
_REGISTERS = Path(__file__).with_name("registers.sh")
_BUILD = Path(__file__).with_name("build.sh")
_TOOLS = ("tar", "xz", "make", "gcc", "ld", "strip", "flex", "bison", "bc")
_APT_TOOLS = ("apt-cache", "apt-get", "dpkg-deb")
_LOG_LINES = 30  # how many an error shows
_DOWNLOAD_LIMIT_S = 600
_BUILD_LIMIT_S = 3600

# These values are from <linux/ptrace.h> and <linux/elf.h>.
_PTRACE_ATTACH = 16
_PTRACE_GETREGSET = 0x4204
_NT_X86_XSTATE = 0x202
_REGISTER_BYTES_MAX = 1 << 20  # more than any processor has


class Unavailable(RuntimeError):
    """This machine cannot run or build a guest; the text says why."""


class _Vector(ctypes.Structure):
    """The C library's ``struct iovec``: memory, and its length."""

    _fields_ = (("address", ctypes.c_void_p), ("nbytes", ctypes.c_size_t))


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a kernel is made from one of Debian's packages.

    Attributes
    ----------
    name : str
        The beginning of the names of results in the cache. A checksum of the package
        and of all that the recipe names follows, so that any change makes a new result.
    package : str
        The name of the package.
    script : Path
        The script that makes ``./linux`` from the package's file and the ingredients.
    ingredients : tuple
        Further arguments of the script: paths of files, and words.
    tools : tuple of str
        The programs that the script needs.
    """

    name: str
    package: str
    script: Path
    ingredients: tuple[Path | str, ...]
    tools: tuple[str, ...]

    def result(self) -> Path:
        """Return the kernel's path; make the kernel if it does not exist yet.

        If several processes ask at once, one makes the kernel and the others wait.

        Raises
        ------
        Unavailable
            If a tool or the package is not available.
        RuntimeError
            If the script fails. The text has the end of what it printed.
        """
        require(*_APT_TOOLS, *self.tools)
        cache = _cache()
        path = cache / f"{self.name}-{self._checksum()}"
        if not path.exists():
            cache.mkdir(parents=True, exist_ok=True)
            with _lock(cache / f"{self.name}.lock") as lock:
                if not path.exists():
                    _make(self, path, lock)
        return path

    def _checksum(self) -> str:
        parts = [_identity(self.package).encode()]
        parts += [
            each.read_bytes() if isinstance(each, Path) else each.encode()
            for each in (*self.ingredients, self.script)
        ]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def kernel() -> Path:
    """Return the path of the kernel that runs as a program.

    Raises
    ------
    Unavailable
        If this machine cannot run the kernel; see also Recipe.result().
    RuntimeError
        See Recipe.result().
    """
    require("sleep")
    check_registers(register_bytes())
    ingredients = (_CONFIG, _REGISTERS, str(REGISTER_BYTES))
    return Recipe("guest-kernel", PACKAGE, _BUILD, ingredients, _TOOLS).result()


def register_bytes() -> int:
    """Return how many bytes of registers the host saves for a process.

    The result is 0 on a processor without XSAVE, for whose few registers there is
    always room.

    Raises
    ------
    Unavailable
        If processes may not be traced here. A kernel that is a program traces the
        processes that run under it.
    """
    room = ctypes.create_string_buffer(_REGISTER_BYTES_MAX)
    vector = _Vector(ctypes.addressof(room), len(room))
    with subprocess.Popen(["sleep", "60"]) as traced:  # noqa: S607 -- of PATH
        try:
            _ptrace(_PTRACE_ATTACH, traced.pid, 0, 0)
            os.waitpid(traced.pid, 0)
            _ptrace(
                _PTRACE_GETREGSET,
                traced.pid,
                _NT_X86_XSTATE,
                ctypes.addressof(vector),
            )
        except OSError as error:
            if error.errno == errno.ENODEV:
                return 0
            raise Unavailable(
                "the guest's kernel must trace processes, which this machine does not "
                f"permit: {error.strerror}"
            ) from None
        finally:
            traced.kill()
    return vector.nbytes


def check_registers(nbytes: int) -> None:
    """Raise Unavailable if the kernel has no room for `nbytes` of registers."""
    if nbytes > REGISTER_BYTES:
        raise Unavailable(
            f"this processor has {nbytes} bytes of registers, and the guest's kernel "
            f"is built for {REGISTER_BYTES} at most: raise REGISTER_BYTES in "
            "bench/guest/kernel.py, and KERNEL_STACK_ORDER in kernel.config with it"
        )


def require(*tools: str) -> None:
    """Raise Unavailable if this machine is not x86-64, or lacks a program."""
    if platform.machine() != "x86_64":
        raise Unavailable("guests run on x86-64 only")
    # Some programs are in folders for root, but work without root's rights.
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    missing = [tool for tool in tools if shutil.which(tool, path=path) is None]
    if missing:
        raise Unavailable(
            f"the guest's kernel needs programs that are missing: {', '.join(missing)}"
        )


def _ptrace(request: int, pid: int, address: int, data: int) -> None:
    """Call ptrace(); raise OSError if it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    words = map(ctypes.c_long, (request, pid, address, data))
    if libc.ptrace(*words) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root).absolute() / "mpimcast"


def _identity(package: str) -> str:
    """Return the line with the checksum of the package that apt would download."""
    done = subprocess.run(
        ["apt-cache", "show", "--no-all-versions", package],  # noqa: S607 -- of PATH
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith("SHA256:"):
            return line
    raise Unavailable(
        f"apt does not know {package}: run `apt-get update` on Debian 12 or 13"
    )


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[int]:
    """Hold a lock; yield its descriptor.

    Processes that inherit the descriptor also hold the lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _make(recipe: Recipe, path: Path, lock: int) -> None:
    """Make a kernel by a recipe, under the lock, and put it at `path` when complete."""
    # The folder of every build has the same name, so each build removes what a killed
    # build has left. The lock keeps builds apart.
    folder = path.with_name(f"{recipe.name}-build")
    if " " in str(folder):
        raise Unavailable(f"no kernel can be built in {folder}: its path has blanks")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        fetch = ["apt-get", "-q", "download", recipe.package]
        status = _run(fetch, folder, lock, _DOWNLOAD_LIMIT_S)
        if status != 0:
            raise Unavailable(
                f"apt-get could not download {recipe.package}:\n{_log_end(folder)}"
            )
        (package,) = folder.glob("*.deb")
        build: list[str | Path]
        build = ["nice", "-n", "19", recipe.script, package, *recipe.ingredients]
        status = _run(build, folder, lock, _BUILD_LIMIT_S)
        if status != 0:
            raise RuntimeError(f"the kernel's build failed:\n{_log_end(folder)}")
        (folder / "linux").rename(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: Sequence[str | Path], folder: Path, lock: int, limit_s: float) -> int:
    """Run a command that logs to the folder, and return its exit status.

    The command and all its children hold the lock. So the next build begins after the
    last of them has ended, even if this process is killed.
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


def _log_end(folder: Path) -> str:
    lines = (folder / "log").read_text(errors="replace").splitlines()
    return "\n".join(lines[-_LOG_LINES:])


if __name__ == "__main__":
    try:
        print(kernel())
    except RuntimeError as error:
        sys.exit(str(error))
