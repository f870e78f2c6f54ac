# SPDX-License-Identifier: BSD-3-Clause
"""What runs a team's operations: this process, a proxy, or a network adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpimcast._support.naming import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast._core import _CData as CData


class Runner(NamedTuple):
    """What runs operations.

    Attributes
    ----------
    kind : str
        "host" for a rank's own process, "proxy", or "firmware".
    name : str
        A proxy's name.
    pid : int
        A proxy's process, or the one that attaches this rank to its adapter.
    """

    kind: str
    name: str = ""
    pid: int = 0

    @classmethod
    def of(cls, c: CData) -> Runner:
        """Return what a struct of C describes."""
        # Only here, since opening a communicator must work without the C library.
        from mpimcast._native.core import RUNNER_KINDS, string

        kind = RUNNER_KINDS[int(c.kind)]
        return cls(kind, string(c.name) if kind == "proxy" else "", int(c.pid))

    @property
    def label(self) -> str:
        """Its words without the process, which differs between nodes."""
        return f"{self.kind} {self.name}".rstrip()

    def __str__(self) -> str:
        """Return it in words, such as "proxy 1000 (process 4711)"."""
        return f"{self.label} (process {self.pid})" if self.pid else self.label


def in_words(own: Runner | None, labels: Sequence[str]) -> str:
    """Return what runs all ranks' operations over a network; empty if nothing does.

    Parameters
    ----------
    own
        What runs this rank's; None if another rank of its node is on the network.
    labels
        What each rank has told, by rank: its runner's label, or nothing.
    """
    told = {rank: label for rank, label in enumerate(labels) if label}
    if len(set(told.values())) > 1:
        return listed(told)
    return str(own or next(iter(told.values()), ""))
