# SPDX-License-Identifier: BSD-3-Clause
"""An address from which datagrams came that are not this job's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Stranger(NamedTuple):
    """An address from which refused datagrams came; it may be forged itself.

    Attributes
    ----------
    rank : int or None
        The rank of the team whose address it is, or seems to be; None for none.
    address : str
        The IPv4 address and port; empty if it is a rank's, or unknown.
    counts : Mapping
        How many datagrams were refused, by cause: ``"foreign"``, ``"malformed"``,
        ``"corrupt"``, ``"forged"`` and ``"replayed"``. In a flood, which the kernel
        filters, these are estimates.
    first_ns, last_ns : int
        When the first and the last came, on the clock of ``time.monotonic_ns()``.

    Examples
    --------
    >>> from mpimcast import Stranger
    >>> print(Stranger(None, "10.0.0.9:4000", {"forged": 3}, first_ns=0, last_ns=9))
    10.0.0.9:4000
    """

    rank: int | None
    address: str
    counts: Mapping[str, int]
    first_ns: int
    last_ns: int

    def __str__(self) -> str:
        """Return the address in words."""
        if self.rank is not None:
            return f"the address of rank {self.rank}"
        return self.address or "an unknown address"
