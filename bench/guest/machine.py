# SPDX-License-Identifier: BSD-3-Clause
"""What a guest's kernel runs on: itself, or an emulated machine.

Either is one process of the user's. Its output is the console; a descriptor that it
is started with is the line to its first process. What guest.py and init.sh have to
tell each other is part of the kernel's command line, which knows no quotes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

_TOOLS = ("bash", "find", "ip", "mount", "rdma", "timeout")


class Machine(Protocol):
    """A way to run a kernel.

    Attributes
    ----------
    tools : tuple of str
        The programs that it takes.
    slowness : float
        How many times longer than with the fastest it may take.
    """

    tools: tuple[str, ...]
    slowness: float

    def command(
        self, place: Path, memory: str, line: int, settings: Sequence[str]
    ) -> list[str | Path]:
        """Return what starts the machine.

        Parameters
        ----------
        place
            A folder of its own, without blanks, where guest is this file's folder,
            kernel is the kernel and work is what it may write.
        memory
            How much it has.
        line
            The descriptor of the line.
        settings
            For the kernel's command line.
        """


class UserMode:
    """A kernel that is a program, see kernel.py."""

    tools: tuple[str, ...] = (*_TOOLS, "stty")
    slowness = 1.0

    def command(
        self, place: Path, memory: str, line: int, settings: Sequence[str]
    ) -> list[str | Path]:
        """Return what starts the machine; see Machine."""
        return [
            (place / "kernel").resolve(),
            f"mem={memory}",
            *("rootfstype=hostfs", "rootflags=/", "ro"),
            *("con=null", "con0=null,fd:1", f"con1=fd:{line}"),
            f"uml_dir={place}/",
            f"init={place}/guest/init.sh",
            "guest_line=/dev/tty1",
            *settings,
        ]


class Emulated:
    """A kernel as Debian's users have it, on a PC in software, see debian.py.

    It has one processor: with more they wait for each other when the host is busy.
    """

    tools: tuple[str, ...] = (*_TOOLS, "nice", "qemu-system-x86_64")
    slowness = 5.0

    def command(
        self, place: Path, memory: str, line: int, settings: Sequence[str]
    ) -> list[str | Path]:
        """Return what starts the machine; see Machine."""
        kernel = place / "kernel"
        boot = [
            "console=ttyS0",
            # Its clock is the host's, and need not be compared with worse ones.
            *("tsc=reliable", "clocksource=tsc"),
            *("mitigations=off", "rcupdate.rcu_expedited=1"),
            f"guest_init={place}/guest/init.sh",
            # The first port of the first of the devices below.
            "guest_line=/dev/vport0p1",
            f"guest_modules={kernel}",
            *settings,
        ]
        pc = [
            *("-accel", "tcg", "-cpu", "max", "-m", memory),
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-serial", "stdio"),
            *("-device", "virtio-serial-pci"),
            *("-chardev", f"socket,id=line,fd={line}"),
            *("-device", "virtserialport,chardev=line"),
            *_share("root", "/", "readonly=on"),
            *_share("work", f"{place}/work", "readonly=off"),
        ]
        files = ["-kernel", f"{kernel}/vmlinuz", "-initrd", f"{kernel}/initrd"]
        emulator = ["nice", "-n", "19", "qemu-system-x86_64"]
        return [*emulator, *pc, *files, "-append", " ".join(boot)]


def machine(kernel: Path) -> Machine:
    """Return what a kernel runs on."""
    return Emulated() if kernel.is_dir() else UserMode()


def _share(tag: str, folder: str, access: str) -> list[str]:
    """Return options that let the machine see a folder of the host."""
    return [
        "-fsdev",
        f"local,id={tag},path={folder},security_model=none,multidevs=remap,{access}",
        "-device",
        f"virtio-9p-pci,fsdev={tag},mount_tag={tag}",
    ]
