# SPDX-License-Identifier: BSD-3-Clause
"""Build the packages for PyPI: the sdist, and from it a wheel for each machine.

``wheels.py FOLDER [MACHINE...]``. The wheels contain every transport and need only
glibc 2.28, wherever they are built. Only wheels that auditwheel has checked are put
into FOLDER.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from scikit_build_core.build import build_sdist

MACHINES = ("x86_64", "aarch64")
GLIBC = (2, 28)

_ROOT = Path(__file__).resolve().parent.parent.parent
_TOOLCHAIN = Path(__file__).with_name("zig.cmake")
# The headers of libibverbs are the same on every architecture, as Debian's package
# declares by "Multi-Arch: same".
_VERBS = ("infiniband/verbs.h", "rdma/rdma_cma.h")


def definitions(machine: str, headers: Path) -> dict[str, str]:
    """Return the definitions with which CMake builds for a machine.

    Parameters
    ----------
    machine : str
        One of MACHINES.
    headers : Path
        A folder of its own, which is filled with links to the headers that zig lacks:
        those of libibverbs and librdmacm, and on Debian the pyconfig.h that Python's
        own includes by the machine's name. This machine's pyconfig.h also serves for
        the other machine: what the stable ABI needs of it is the same on both.
    """
    shutil.rmtree(headers, ignore_errors=True)
    headers.mkdir(parents=True)
    for name in _VERBS:
        found = Path("/usr/include", name)
        if not found.is_file():
            raise SystemExit(
                f"The wheels are to have every transport, and there is no {found}: "
                "apt install libibverbs-dev librdmacm-dev"
            )
        (headers / found.parent.name).symlink_to(found.parent)
    python = Path(sysconfig.get_config_h_filename()).parent
    hidden = python.parent / str(sysconfig.get_config_var("MULTIARCH")) / python.name
    if hidden.is_dir():
        expected = headers / f"{machine}-linux-gnu" / python.name
        expected.parent.mkdir()
        expected.symlink_to(hidden)
    return {
        "CMAKE_TOOLCHAIN_FILE": str(_TOOLCHAIN),
        "MPIMCAST_MACHINE": machine,
        "MPIMCAST_PYTHON": sys.executable,
        "MPIMCAST_HEADERS": str(headers),
        "MPIMCAST_HAS_VERBS": "ON",
    }


def build_wheel(sdist: Path, machine: str, folder: Path) -> Path:
    """Build the wheel for a machine from the sdist, check it, and return its path."""
    platform = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}"
    with tempfile.TemporaryDirectory() as temporary:
        built = Path(temporary, "wheel")
        settings = {"wheel.tags": f"cp310-abi3-{platform}", "install.strip": "false"}
        for name, value in definitions(machine, Path(temporary, "headers")).items():
            settings[f"cmake.define.{name}"] = value
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel"),
                *("--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir"),
                *(
                    f"--config-settings={name}={value}"
                    for name, value in settings.items()
                ),
                *("--wheel-dir", built, sdist),
            ],
            check=True,
        )
        (wheel,) = built.iterdir()
        audit(wheel, machine)
        return Path(shutil.move(wheel, folder / wheel.name))


def audit(wheel: Path, machine: str) -> None:
    """Raise SystemExit if a wheel needs more than its name says."""
    done = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    said = " ".join(done.stdout.split())
    needs = re.search(rf'platform tag: "manylinux_(\d+)_(\d+)_{machine}"', said)
    if needs is None or (int(needs[1]), int(needs[2])) > GLIBC:
        raise SystemExit(f"{wheel.name} is not what it says:\n{done.stdout}")


def main(folder: str, *machines: str) -> None:
    """Replace the contents of the folder with new packages."""
    out = Path(folder).absolute()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    os.chdir(_ROOT)  # where the hook looks for the project
    sdist = out / build_sdist(str(out))
    print(sdist)
    for machine in machines or MACHINES:
        print(build_wheel(sdist, machine, out), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
