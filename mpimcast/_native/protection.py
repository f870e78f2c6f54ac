# SPDX-License-Identifier: BSD-3-Clause
"""Protection of datagrams: the libraries for it, and the secret that ranks share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._core import ffi, lib
from mpimcast._native.core import check, last_error, string

if TYPE_CHECKING:
    from collections.abc import Iterator

# What seals datagrams, from the fastest on, and the C library's numbers.
PRIMITIVES = {"aegis": lib.MMC_PRIMITIVE_AEGIS, "aes": lib.MMC_PRIMITIVE_AES}

# By how much protection makes a datagram longer.
SEAL_BYTES = int(lib.MMC_SEAL_BYTES)

_MODES = {"authenticate": "authenticated", "encrypt": "encrypted"}
_NUMBERS = {
    "authenticate": lib.MMC_PROTECT_AUTHENTICATE,
    "encrypt": lib.MMC_PROTECT_ENCRYPT,
}


class Protection(NamedTuple):
    """How the datagrams of a team are protected.

    Attributes
    ----------
    mode : str
        What is done: authenticate or encrypt, as in PROTECT.
    primitive : str
        By what; a name of `PRIMITIVES`.
    """

    mode: str
    primitive: str

    def options(self) -> dict[str, int]:
        """Return the fields of C's struct mmc_team_options that say this."""
        return {
            "protect": _NUMBERS[self.mode],
            "primitive": PRIMITIVES[self.primitive],
        }

    def describe(self) -> str:
        """Return in words what is done, and by which library."""
        return f"{_MODES[self.mode]} by {name(self.primitive)}"


def name(primitive: str) -> str:
    """Return a primitive's name for people, with that of its library."""
    return string(lib.mmc_primitive_name(PRIMITIVES[primitive]))


def missing() -> dict[str, str]:
    """Return why each primitive cannot be used here; empty for those that can."""
    return {primitive: _open(primitive) for primitive in PRIMITIVES}


def _open(primitive: str) -> str:
    """Open a primitive's library; return why that fails, or ""."""
    reasons = []
    for library in ("", *modules(primitive)):
        if lib.mmc_primitive_open(PRIMITIVES[primitive], library.encode()) == 0:
            return ""
        reasons.append(last_error())
    return "; ".join(reasons)


def modules(primitive: str) -> Iterator[str]:
    """Yield the paths of modules of Python that have a primitive's library in them."""
    if primitive != "aegis":
        return
    found = importlib.util.find_spec("pyaegis")
    for folder in (found and found.submodule_search_locations) or ():
        yield from map(str, sorted(Path(folder).glob("_aegis_ffi*.so")))


class Secret:
    """A secret that all ranks of one team share, in memory that is wiped at the end.

    Attributes
    ----------
    memory
        The secret itself, as a writable buffer.
    """

    def __init__(self) -> None:
        made = ffi.new("struct mmc_secret **")
        check(lib.mmc_secret_create(made), "no memory for a secret")
        self.c = made[0]
        self.memory = ffi.buffer(
            lib.mmc_secret_bytes(self.c), int(lib.MMC_SECRET_BYTES)
        )

    def draw(self) -> None:
        """Fill the secret with random bits."""
        check(lib.mmc_secret_draw(self.c), "cannot draw a secret")

    def close(self) -> None:
        """Wipe and free the secret; `memory` may not be used any more."""
        lib.mmc_secret_free(self.c)
