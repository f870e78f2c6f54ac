# SPDX-License-Identifier: BSD-3-Clause
"""The commands that start a guest's kernel, as a program or on an emulated machine.

Both are one process of the user. Its output is the guest's console. A socket that it
inherits is the line to the first process in the guest. The kernel's command line, which
has no quoting, holds the settings that guest.py passes to init.sh.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

_TOOLS = ("bash", "find", "ip", "mount", "rdma", "timeout")


class Machine(Protocol):
    """A program that runs a guest's kernel.

    Attributes
    ----------
    tools : tuple of str
        The programs that the machine and the guest need.
    slowness : float
        The factor by which time limits are multiplied.
    """

    tools: tuple[str, ...]
    slowness: float

    def command(
        self, place: Path, memory: str, line: int, settings: Sequence[str]
    ) -> list[str | Path]:
        """Return the command that starts the machine.

        Parameters
        ----------
        place
            The machine's folder, a path without blanks. In it are `guest`, a link to
            the folder of this file, `kernel`, a link to the kernel, and `work`, the
            folder that the guest may write to.
        memory
            The size of the memory, as in "2G".
        line
            The descriptor of the line to the guest's first process.
        settings
            Words to add to the kernel's command line.
        """


class UserMode:
    """A kernel that runs as a program; see kernel.py."""

    tools: tuple[str, ...] = (*_TOOLS, "stty")
    slowness = 1.0

    def command(
        self, place: Path, memory: str, line: int, settings: Sequence[str]
    ) -> list[str | Path]:
        """Return the command that starts the machine; see Machine."""
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
    """Debian's kernel on an emulated PC; see debian.py.

    The PC has one processor, since several would wait for each other on a busy host.
    """

    tools: tuple[str, ...] = (*_TOOLS, "nice", "qemu-system-x86_64")
    slowness = 5.0

    def command(
        self, place: Path, memory: str, line: int, settings: Sequence[str]
    ) -> list[str | Path]:
        """Return the command that starts the machine; see Machine."""
        kernel = place / "kernel"
        boot = [
            "console=ttyS0",
            # The clock is the host's, so the kernel need not check it against others.
            *("tsc=reliable", "clocksource=tsc"),
            *("mitigations=off", "rcupdate.rcu_expedited=1"),
            f"guest_init={place}/guest/init.sh",
            # The port of the virtio-serial device below.
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
    """Return the machine for a kernel: a PC if it is a folder that debian.py made."""
    return Emulated() if kernel.is_dir() else UserMode()


def _share(tag: str, folder: str, access: str) -> list[str]:
    """Return qemu's options that share a folder of the host under a tag."""
    return [
        "-fsdev",
        f"local,id={tag},path={folder},security_model=none,multidevs=remap,{access}",
        "-device",
        f"virtio-9p-pci,fsdev={tag},mount_tag={tag}",
    ]
