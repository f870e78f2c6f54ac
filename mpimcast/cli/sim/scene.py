# SPDX-License-Identifier: BSD-3-Clause
"""The scene of a simulated run, for C: a fabric, and other messages on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mpimcast._core import ffi
from mpimcast._peers.schedule import no_messages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpimcast._core import _CData as CData
    from mpimcast._fabric.arrays import Arrays
    from mpimcast._peers.background import Background
    from mpimcast._peers.schedule import Messages


def _dtype(cdecl: str) -> np.dtype[Any]:
    """Return the dtype of a C struct of integers."""
    fields = dict(ffi.typeof(cdecl).fields)
    return np.dtype(
        {
            "names": list(fields),
            "formats": [
                field.type.cname.removesuffix("_t") for field in fields.values()
            ],
            "offsets": [field.offset for field in fields.values()],
            "itemsize": ffi.sizeof(cdecl),
        }
    )


_LINK = _dtype("struct mmc_fabric_link")


@dataclass(frozen=True)
class Packets:
    """How the messages of a script travel.

    Parameters
    ----------
    payload_bytes
        The most payload of a packet.
    header_bytes
        The headers of each packet: by default those of RoCEv2 with Ethernet (14), IPv4
        (20), UDP (8), the base transport header (12) and the ICRC (4), as many as ours.
    convoy_bytes
        The payload that a host sends at a time.
    overhead_ns
        The time from the receipt of a message until one that waited for it starts.
    """

    payload_bytes: int = 4096
    header_bytes: int = 58
    convoy_bytes: int = 65536
    overhead_ns: int = 0


class Scene:
    """A fabric and a script as the simulator takes them.

    Parameters
    ----------
    arrays
        The fabric; None: the one that the spec of a run describes.
    schedule
        Messages that are sent beside the operations; None: none.
    packets
        How those messages travel.
    background
        Messages that do not count for the times of the result; None: none.
    adaptive
        Whether switches choose the shortest queue instead of one by a hash.
    """

    def __init__(
        self,
        arrays: Arrays | None = None,
        schedule: Messages | None = None,
        *,
        packets: Packets | None = None,
        background: Background | None = None,
        adaptive: bool = False,
    ) -> None:
        self._kept: list[NDArray[Any]] = []
        self.fabric = (
            ffi.NULL if arrays is None else self._fabric(arrays, int(adaptive))
        )
        self.script = ffi.NULL
        if schedule is not None or background is not None:
            self.script = self._script(schedule, background, packets or Packets())

    def _fabric(self, arrays: Arrays, choice: int) -> CData:
        links = np.zeros(len(arrays.link_from), _LINK)
        links["from"], links["to"] = arrays.link_from, arrays.link_to
        parts = arrays.link_loss_ppb.astype(np.uint64) * 2**32 // 10**9
        links["loss"] = np.minimum(parts, 2**32 - 1)
        for name in _LINK.names or ():
            if name not in {"from", "to", "loss"}:
                links[name] = getattr(arrays, f"link_{name}")
        return ffi.new(
            "struct mmc_fabric *",
            {
                "nhosts": arrays.nhosts,
                "nswitches": arrays.nswitches,
                "nlinks": len(links),
                "ntrees": (len(arrays.tree_first) - 1) // arrays.nswitches,
                "choice": choice,
                "links": self._pointer("struct mmc_fabric_link", links),
                "route_first": self._pointer("uint32_t", arrays.route_first),
                "route_links": self._pointer("uint32_t", arrays.route_links),
                "tree_first": self._pointer("uint32_t", arrays.tree_first),
                "tree_links": self._pointer("uint32_t", arrays.tree_links),
            },
        )

    def _script(
        self,
        schedule: Messages | None,
        background: Background | None,
        packets: Packets,
    ) -> CData:
        messages = schedule or no_messages()
        nmeasured = len(messages.sender)
        earliest_ns = np.zeros(nmeasured, np.uint64)
        if background is not None:
            messages = messages.beside(background.messages)
            earliest_ns = np.concatenate([earliest_ns, background.earliest_ns])
        return ffi.new(
            "struct mmc_script *",
            {
                "nmessages": len(messages.sender),
                "nmeasured": nmeasured,
                "senders": self._pointer("uint32_t", messages.sender),
                "receivers": self._pointer("uint32_t", messages.receiver),
                "nbytes": self._pointer("uint64_t", messages.nbytes),
                "earliest_ns": self._pointer("uint64_t", earliest_ns),
                "next_first": self._pointer("uint64_t", messages.next_first),
                "next": self._pointer("uint32_t", messages.next),
                "overhead_ns": packets.overhead_ns,
                "packet_bytes": packets.payload_bytes,
                "header_bytes": packets.header_bytes,
                "convoy_bytes": packets.convoy_bytes,
            },
        )

    def _pointer(self, kind: str, array: NDArray[Any]) -> CData:
        """Return an array for C, which lives as long as the scene."""
        kept = np.ascontiguousarray(array)
        self._kept.append(kept)
        return ffi.from_buffer(f"{kind}[]", kept) if kept.size else ffi.NULL
