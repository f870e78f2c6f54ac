# SPDX-License-Identifier: BSD-3-Clause
"""Where a rank's data comes from and goes to: the host's memory, or a device's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mpimcast._device.device import Device
    from mpimcast._mpi.buffers import Message


class Ends(NamedTuple):
    """The ends of a collective's data on this rank.

    Attributes
    ----------
    own : int or None
        The number of this rank's block; None if it has none.
    send : Message or None
        The memory of this rank's block; None if it lies in its place.
    recv : Message or None
        The memory of the result; None if there is no data.
    """

    own: int | None = None
    send: Message | None = None
    recv: Message | None = None

    @property
    def source(self) -> Device | None:
        """The device that this rank's block comes from."""
        if self.own is None:
            return None
        end = self.recv if self.send is None else self.send
        return None if end is None else end.device

    @property
    def result(self) -> Device | None:
        """The device that the result goes to."""
        return None if self.recv is None else self.recv.device

    def on_device(self) -> bool:
        """Return whether some of the data is on a device."""
        return self.source is not None or self.result is not None

    def follow_arrays(self) -> None:
        """Let copies wait for all that the arrays' own streams have to do by now."""
        for end in (self.send, self.recv):
            if end is not None and end.device is not None:
                end.device.follow(end.array)
