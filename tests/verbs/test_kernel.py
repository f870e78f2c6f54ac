# SPDX-License-Identifier: BSD-3-Clause
"""How the guest's kernel is kept: with a build of a moment instead of the real one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import support

from bench.guest import kernel

# It tells that it has begun, and goes on when it is told to.
BUILD = """#!/bin/sh
echo $$ >>"$COUNT"
until test -e "$GO"; do sleep 0.02; done
test ! -e left-over && touch left-over && cp "$1" linux
"""

APT_CACHE = '#!/bin/sh\necho "SHA256: $VERSION"\n'
APT_GET = "#!/bin/sh\necho a package >source.deb\n"


class Machine:
    """A folder with a copy of kernel.py, and programs that stand for apt."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache/mpimcast"
        self.count = folder / "count"
        self.go = folder / "go"
        self._program = folder / "kernel.py"
        shutil.copy(kernel.__file__, self._program)
        (folder / "kernel.config").write_text("CONFIG_64BIT=y\n")
        (folder / "bin").mkdir()
        programs = {"build.sh": BUILD}
        programs |= {"bin/apt-cache": APT_CACHE, "bin/apt-get": APT_GET}
        for name, text in programs.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        for tool in ("dpkg-deb", "flex", "bison", "bc"):
            (folder / "bin" / tool).symlink_to("/bin/true")
        self._environment = {
            **os.environ,
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "COUNT": str(self.count),
            "GO": str(self.go),
        }

    def start(self, version: str = "1") -> subprocess.Popen[str]:
        """Ask for the kernel."""
        return subprocess.Popen(
            [sys.executable, self._program],
            env={**self._environment, "VERSION": version},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kernel(self, process: subprocess.Popen[str]) -> Path:
        """Return the kernel that a process was to make."""
        said, _ = process.communicate(timeout=30)
        assert process.returncode == 0, said
        path = Path(said.strip())
        assert path.read_text() == "a package\n"
        return path

    def builds(self) -> int:
        """Return how many builds have begun."""
        return self.count.read_text().count("\n") if self.count.exists() else 0


def await_true(condition: Callable[[], bool]) -> None:
    """Wait for something; fail if it takes too long."""
    deadline_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine without a kernel."""
    for tool in ("gcc", "ld", "make", "strip", "tar", "xz"):
        support.require_tool(tool)
    return Machine(tmp_path)


def test_one_builds_for_all(machine: Machine) -> None:
    """Of several at once one builds; later none does, until the source is another."""
    several = [machine.start() for _ in range(3)]
    await_true(lambda: machine.builds() == 1)
    machine.go.touch()
    paths = {machine.kernel(process) for process in several}
    paths.add(machine.kernel(machine.start()))
    assert len(paths) == 1
    assert machine.builds() == 1
    assert machine.kernel(machine.start(version="2")) not in paths
    assert machine.builds() == 2
    names = {path.name for path in machine.cache.iterdir()}
    assert len(names) == 3, "two kernels and a lock"


def test_a_killed_build_is_no_obstacle(machine: Machine) -> None:
    """The next begins when the last process of the killed one has ended."""
    first = machine.start()
    await_true(lambda: machine.builds() == 1)
    first.kill()
    first.communicate()
    second = machine.start()
    with pytest.raises(subprocess.TimeoutExpired):
        second.communicate(timeout=0.5)
    assert machine.builds() == 1
    machine.go.touch()
    machine.kernel(second)
    assert machine.builds() == 2


def test_a_failed_build_says_why(machine: Machine) -> None:
    """What the build printed last is told, and nothing is kept."""
    machine.go.touch()
    build = machine.count.with_name("build.sh")
    build.write_text("#!/bin/sh\necho no more room; exit 1\n")
    process = machine.start()
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "no more room" in said
    assert [path.name for path in machine.cache.iterdir()] == ["guest-kernel.lock"]
