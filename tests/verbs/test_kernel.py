# SPDX-License-Identifier: BSD-3-Clause
"""The guest's kernel is built once and cached.

The tests run bench/guest/kernel.py itself, but with a program that only pretends to
build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import support
from waiting import await_state

from bench.guest import kernel

# The program that runs instead of the build. It writes a line to $COUNT, waits until
# the file $GO exists, and copies the package to "linux". It fails if an earlier build
# left files.
BUILD = """#!/bin/sh
echo $$ >>"$COUNT"
until test -e "$GO"; do sleep 0.02; done
test ! -e left-over && touch left-over && cp "$1" linux
"""

# Prints how many bytes the processor's registers take when they are saved, with the
# features that are enabled now (Intel's manual, volume 1, section 13.2).
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

# The parts of a kernel's source that registers.sh examines and changes.
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

# The program that runs instead of apt. The variable VERSION is the source's version.
APT_CACHE = '#!/bin/sh\necho "SHA256: $VERSION"\n'
APT_GET = "#!/bin/sh\necho a package >source.deb\n"


class Machine:
    """A folder with a copy of kernel.py, its cache, and programs that replace apt's.

    Attributes
    ----------
    cache, count, go, program : Path
        The cache of kernels; the file with one line for each build; the file that lets
        builds go on; the copy of kernel.py.
    """

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
        """Start a process that asks for the kernel of a version of the source."""
        return subprocess.Popen(
            [sys.executable, self.program],
            env={**self._environment, "VERSION": version},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kernel(self, process: subprocess.Popen[str]) -> Path:
        """Wait for the end of a process of start(), and return the path it printed.

        The file at that path must be the kernel that the build makes.
        """
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 0, output
        path = Path(output.strip())
        assert path.read_text() == "a package\n"
        return path

    def builds(self) -> int:
        """Return how many builds have been started."""
        return self.count.read_text().count("\n") if self.count.exists() else 0


def set_register_bytes(program: Path, register_bytes: int) -> None:
    """Change a copy of kernel.py to build kernels for another size of registers."""
    text = program.read_text()
    size = f"REGISTER_BYTES = {kernel.REGISTER_BYTES}"
    assert text.count(size) == 1
    program.write_text(text.replace(size, f"REGISTER_BYTES = {register_bytes}"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine on which no kernel has been built yet."""
    for tool in ("gcc", "ld", "make", "strip", "tar", "xz"):
        support.require_tool(tool)
    return Machine(tmp_path)


def test_one_builds_for_all(machine: Machine) -> None:
    """Of several processes, one builds the kernel, and all get it.

    A kernel is built anew if the source, registers.sh or the size of registers changes.
    """
    several = [machine.start() for _ in range(3)]
    await_state(lambda: machine.builds() == 1)
    machine.go.touch()
    paths = {machine.kernel(process) for process in several}
    paths.add(machine.kernel(machine.start()))
    assert len(paths) == 1
    assert machine.builds() == 1
    paths.add(machine.kernel(machine.start(version="2")))
    machine.program.with_name("registers.sh").write_text("exit 1\n")
    paths.add(machine.kernel(machine.start()))
    set_register_bytes(machine.program, kernel.REGISTER_BYTES + 1)
    paths.add(machine.kernel(machine.start()))
    assert len(paths) == 4
    assert machine.builds() == 4
    names = {path.name for path in machine.cache.iterdir()}
    assert len(names) == 5, "four kernels and a lock"


def test_a_killed_build_is_done_again(machine: Machine) -> None:
    """The next process waits until a killed build has no process left, then builds."""
    first = machine.start()
    await_state(lambda: machine.builds() == 1)
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
    """The last output of a failed build is shown, and its files are removed."""
    machine.go.touch()
    build = machine.count.with_name("build.sh")
    build.write_text("#!/bin/sh\necho no more room; exit 1\n")
    process = machine.start()
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "no more room" in output
    assert [path.name for path in machine.cache.iterdir()] == ["guest-kernel.lock"]


def test_registers_of_this_machine(tmp_path: Path) -> None:
    """kernel.py finds the size of registers that the processor itself reports."""
    support.require_tool("gcc")
    (tmp_path / "cpuid.c").write_text(CPUID)
    support.run(["gcc", "-o", "cpuid", "cpuid.c"], limit_s=30, cwd=tmp_path)
    output = support.run([tmp_path / "cpuid"], limit_s=10)
    assert kernel.register_bytes() == int(output)


def test_too_many_registers(machine: Machine) -> None:
    """A processor whose registers exceed the kernel's room is refused."""
    set_register_bytes(machine.program, 8)
    output, _ = (process := machine.start()).communicate(timeout=30)
    assert process.returncode == 1
    assert output.count("\n") == 1
    assert re.match(
        r"this processor has \d+ bytes of registers, .* built for 8 ", output
    )
    assert machine.builds() == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("have_xstate_support = 1;", "have_xstate_support = true;"),
        ("have_xstate_support = 1;", "have_xstate_support = 1;\n" * 2),
        ("void arch_init_registers(", "void init_registers("),
    ],
)
def test_a_source_that_is_not_known(tmp_path: Path, old: str, new: str) -> None:
    """registers.sh refuses a source that differs from the one that it can change.

    It changes the source that it knows: registers take 96 words, and the kernel reads
    and writes as much of them as the host says.
    """
    for name, text in SOURCE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    change = ["bash", Path(kernel.__file__).with_name("registers.sh"), tmp_path, "96"]
    spoilt = tmp_path / REGISTERS
    text = spoilt.read_text()
    spoilt.write_text(text.replace(old, new))
    code, output = support.run_unchecked(change, limit_s=20)
    assert code == 1
    assert output.startswith("registers.sh has to be adapted to this kernel")
    assert f"in {REGISTERS}, " in output
    for name, original in SOURCE.items():
        (tmp_path / name).write_text(original)
    support.run(change, limit_s=20)
    changed = "".join((tmp_path / name).read_text() for name in SOURCE)
    assert changed.count("HOST_FP_SIZE, 96)") == 1
    assert changed.count("iov_len = FP_SIZE") == 1
    assert changed.count("iov_len = have_xstate_support;") == 1
    assert changed.count("have_xstate_support = iov.iov_len;") == 1
