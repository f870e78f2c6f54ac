# SPDX-License-Identifier: BSD-3-Clause
"""How all ranks agree on the protection of a team, and come to share its secret."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from mpimcast._support.log import logger
from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mpimcast._mpi.private import Private
    from mpimcast._native.protection import Protection, Secret
    from mpimcast._native.transport import Transport
    from mpimcast._settings.config import Config


def choose(
    config: Config,
    kind: type[Transport],
    told: Sequence[Mapping[str, str]],
    *,
    warns: bool,
) -> Protection | None:
    """Choose the protection of a team, on all ranks alike; None is none.

    Raise ConfigError on all ranks if PROTECT asks for what some rank cannot do.

    Parameters
    ----------
    kind
        The team's transport.
    told
        What each rank has told, by rank: why it cannot use a primitive, which is empty
        if it can, by the primitive's name.
    warns
        Whether this rank logs a warning if PROTECT=auto finds no library.
    """
    if config.protect == "off" or (config.protect == "auto" and kind.rdma):
        return None
    from mpimcast._native.protection import Protection

    mode = "authenticate" if config.protect == "auto" else config.protect
    for primitive in told[0]:
        if not any(reasons[primitive] for reasons in told):
            return Protection(mode, primitive)
    ranks = _blame(told)
    why = "; ".join(told[ranks[0]].values())
    text = f"rank {ranks[0]} has no library to protect datagrams that all have: {why}"
    if config.protect != "auto":
        raise ConfigError(
            f"PROTECT={config.protect}, but {text}. Install OpenSSL 3 (libcrypto) "
            "there, or set PROTECT=auto or off",
            ranks=ranks,
        )
    if warns:
        logger.warning("datagrams are not protected: %s", text)
    return None


def _blame(told: Sequence[Mapping[str, str]]) -> list[int]:
    """Return the ranks with no primitive, or else those that lack the commonest."""
    none = [rank for rank, reasons in enumerate(told) if all(reasons.values())]
    if none:
        return none
    lacking = {
        primitive: [rank for rank, reasons in enumerate(told) if reasons[primitive]]
        for primitive in told[0]
    }
    return min(lacking.values(), key=len)


@contextlib.contextmanager
def secret(
    protection: Protection | None, private: Private, config: Config
) -> Iterator[Secret | None]:
    """Draw a secret on rank 0, and yield it on all ranks. Collective.

    Yield None without protection. The secret is wiped afterwards. If the exchange
    fails it is not, since the MPI library may still write to it.
    """
    if protection is None:
        yield None
        return
    from mpimcast._native.protection import Secret

    shared = Secret()
    if private.Get_rank() == 0:
        shared.draw()
    private.spread(shared.memory, config.timeout, "sharing a secret")
    try:
        yield shared
    finally:
        shared.close()
