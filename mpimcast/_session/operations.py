# SPDX-License-Identifier: BSD-3-Clause
"""Makes the operations that carry collectives: C's own, or such as go in pieces."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeAlias

from mpimcast._native.operation import NativeOperation
from mpimcast._session.staged import StagedOperation

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._native.calls import AnyStream
    from mpimcast._session.collectives import Collective

Operation: TypeAlias = NativeOperation | StagedOperation


class Operations:
    """Makes the operations of one communicator.

    Parameters
    ----------
    cut_bytes
        The size of a result above which all ranks cut a collective into pieces; 0 if
        they cut none.
    wake
        Has the completers look at the operations. Any thread may call it.
    attended
        Whether completers look after those that return a request.
    """

    def __init__(
        self, cut_bytes: int, wake: Callable[[], None], *, attended: bool
    ) -> None:
        self.cut_bytes = cut_bytes
        self.wake = wake
        self.attended = attended

    def make(self, stream: AnyStream, collective: Collective) -> Operation:
        """Make the operation that carries a collective on a stream."""
        name, ends = str(collective), collective.ends
        if self.cuts(collective):
            return StagedOperation(stream, name, ends, self.cut_bytes, self.wake)
        if ends.on_device():
            return StagedOperation(stream, name, ends, sys.maxsize, self.wake)
        return NativeOperation(stream, name)

    def cuts(self, collective: Collective) -> bool:
        """Return whether a collective is cut into pieces, on all ranks alike.

        All ranks know which results they share: those are never cut.
        """
        is_private = collective.target.memory is None
        return is_private and 0 < self.cut_bytes < collective.total_bytes

    def cuts_class(self, nbits: int, nblocks: int) -> bool:
        """Return whether collectives of `nblocks` blocks of a class may be cut."""
        return 0 < self.cut_bytes < ((1 << nbits) - 1) * nblocks
