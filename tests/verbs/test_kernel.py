# SPDX-License-Identifier: BSD-3-Clause
"""The guest's kernel is built once and cached; a fake build replaces the real one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import support

from bench.guest import kernel

# The fake build counts itself, and goes on once the file $GO exists.
BUILD = """#!/bin/sh
echo $$ >>"$COUNT"
until test -e "$GO"; do sleep 0.02; done
test ! -e left-over && touch left-over && cp "$1" linux
"""

# Prints the bytes of the processor's state (Intel's manual, volume 1, section 13.2).
CPUID = """
#include <cpuid.h>
#include <stdio.h>
int main(void)
{
	unsigned eax, ebx, ecx, edx;

	__cpuid_count(0xd, 0, eax, ebx, ecx, edx);
	return printf("%u\\n", ebx) < 0;
}
"""

# The parts of a kernel's source that registers.sh examines.
REGISTERS = "arch/x86/um/os-Linux/registers.c"
SOURCE = {
    "arch/x86/um/user-offsets.c": """
void foo(void)
{
	DEFINE_LONGS(HOST_FP_SIZE, 2696);
}
""",
    REGISTERS: """
int save_fp_registers(int pid, unsigned long *fp_regs)
{
	iov.iov_len = FP_SIZE * sizeof(unsigned long);
}

int restore_fp_registers(int pid, unsigned long *fp_regs)
{
	iov.iov_len = FP_SIZE * sizeof(unsigned long);
}

void arch_init_registers(int pid)
{
	have_xstate_support = 1;
}
""",
}

APT_CACHE = '#!/bin/sh\necho "SHA256: $VERSION"\n'
APT_GET = "#!/bin/sh\necho a package >source.deb\n"


class Machine:
    """A folder with a copy of kernel.py, and programs that replace apt."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache/mpimcast"
        self.count = folder / "count"
        self.go = folder / "go"
        self.program = folder / "kernel.py"
        shutil.copy(kernel.__file__, self.program)
        (folder / "kernel.config").write_text("CONFIG_64BIT=y\n")
        (folder / "registers.sh").write_text("exit 0\n")
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
        """Start a process that asks for the kernel."""
        return subprocess.Popen(
            [sys.executable, self.program],
            env={**self._environment, "VERSION": version},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kernel(self, process: subprocess.Popen[str]) -> Path:
        """Return the path of the kernel that a process asked for, once it has ended."""
        said, _ = process.communicate(timeout=30)
        assert process.returncode == 0, said
        path = Path(said.strip())
        assert path.read_text() == "a package\n"
        return path

    def builds(self) -> int:
        """Return how many builds have been started."""
        return self.count.read_text().count("\n") if self.count.exists() else 0


def await_true(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail if that takes too long."""
    deadline_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def enlarge(program: Path, register_bytes: int) -> None:
    """Change a copy of kernel.py to build kernels for another size of registers."""
    text = program.read_text()
    size = f"REGISTER_BYTES = {kernel.REGISTER_BYTES}"
    assert text.count(size) == 1
    program.write_text(text.replace(size, f"REGISTER_BYTES = {register_bytes}"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine on which no kernel has been built."""
    for tool in ("gcc", "ld", "make", "strip", "tar", "xz"):
        support.require_tool(tool)
    return Machine(tmp_path)


def test_one_builds_for_all(machine: Machine) -> None:
    """One of several processes builds; none builds again until an input changes."""
    several = [machine.start() for _ in range(3)]
    await_true(lambda: machine.builds() == 1)
    machine.go.touch()
    paths = {machine.kernel(process) for process in several}
    paths.add(machine.kernel(machine.start()))
    assert len(paths) == 1
    assert machine.builds() == 1
    paths.add(machine.kernel(machine.start(version="2")))
    machine.program.with_name("registers.sh").write_text("exit 1\n")
    paths.add(machine.kernel(machine.start()))
    enlarge(machine.program, kernel.REGISTER_BYTES + 1)
    paths.add(machine.kernel(machine.start()))
    assert len(paths) == 4
    assert machine.builds() == 4
    names = {path.name for path in machine.cache.iterdir()}
    assert len(names) == 5, "four kernels and a lock"


def test_a_killed_build_is_no_obstacle(machine: Machine) -> None:
    """A build starts once the last process of a killed build has ended."""
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
    """The last output of a failed build is shown, and nothing of it is kept."""
    machine.go.touch()
    build = machine.count.with_name("build.sh")
    build.write_text("#!/bin/sh\necho no more room; exit 1\n")
    process = machine.start()
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "no more room" in said
    assert [path.name for path in machine.cache.iterdir()] == ["guest-kernel.lock"]


def test_registers_of_this_machine(tmp_path: Path) -> None:
    """The size of the registers that kernel.py finds is the processor's own."""
    support.require_tool("gcc")
    (tmp_path / "cpuid.c").write_text(CPUID)
    support.run(["gcc", "-o", "cpuid", "cpuid.c"], limit_s=30, cwd=tmp_path)
    said = support.run([tmp_path / "cpuid"], limit_s=10)
    assert kernel.register_bytes() == int(said)


def test_too_many_registers(machine: Machine) -> None:
    """A processor with more registers than the kernel has room for is refused."""
    enlarge(machine.program, 8)
    said, _ = (process := machine.start()).communicate(timeout=30)
    assert process.returncode == 1
    assert said.count("\n") == 1
    assert re.match(r"this processor has \d+ bytes of registers, .* built for 8 ", said)
    assert machine.builds() == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("have_xstate_support = 1;", "have_xstate_support = true;"),
        ("have_xstate_support = 1;", "have_xstate_support = 1;\n" * 2),
        ("void arch_init_registers(", "void init_registers("),
    ],
)
def test_another_source(tmp_path: Path, old: str, new: str) -> None:
    """A source that registers.sh does not know is refused, and a known one changed."""
    for name, text in SOURCE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    change = ["bash", Path(kernel.__file__).with_name("registers.sh"), tmp_path, "96"]
    spoilt = tmp_path / REGISTERS
    text = spoilt.read_text()
    spoilt.write_text(text.replace(old, new))
    code, said = support.run_unchecked(change, limit_s=20)
    assert code == 1
    assert said.startswith(f"{REGISTERS} is not the one that registers.sh can change")
    for name, original in SOURCE.items():
        (tmp_path / name).write_text(original)
    support.run(change, limit_s=20)
    changed = "".join((tmp_path / name).read_text() for name in SOURCE)
    assert changed.count("HOST_FP_SIZE, 96)") == 1
    assert changed.count("iov_len = FP_SIZE") == 1
    assert changed.count("iov_len = have_xstate_support;") == 1
    assert changed.count("have_xstate_support = iov.iov_len;") == 1
