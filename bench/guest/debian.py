# SPDX-License-Identifier: BSD-3-Clause
"""Unpack Debian's own kernel for an emulated guest, and keep it in the user's cache."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from bench.guest import kernel

METAPACKAGE = "linux-image-amd64"

_HERE = Path(__file__).parent
_TOOLS = ("awk", "cpio", "depmod", "gcc", "modprobe", "xz")


def debian() -> Path:
    """Return the folder that holds the kernel; make it if it does not exist yet.

    unpack.sh lists the folder's files, and kernel.Recipe.result() the errors.
    Unavailable is also raised if apt does not know Debian's kernel.
    """
    kernel.require("apt-cache")
    done = subprocess.run(
        ["apt-cache", "depends", METAPACKAGE],  # noqa: S607 -- of PATH
        capture_output=True,
        text=True,
        check=False,
    )
    named = re.search(r"^\s*Depends: (linux-image-\S+)$", done.stdout, re.MULTILINE)
    if named is None:
        raise kernel.Unavailable(
            f"apt does not know {METAPACKAGE}: run `apt-get update` on Debian"
        )
    recipe = kernel.Recipe(
        "guest-debian", named[1], _HERE / "unpack.sh", (_HERE / "initrd.c",), _TOOLS
    )
    return recipe.result()
