# SPDX-License-Identifier: BSD-3-Clause
"""Messages of other jobs on the same fabric, at random times."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mpimcast._fabric.mixing import mix64
from mpimcast._peers.schedule import Messages

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MESSAGE_BYTES = 65536
_PPM = 10**6


class Background(NamedTuple):
    """Messages, and the times before which they do not start: (nmessages,)."""

    messages: Messages
    earliest_ns: NDArray[np.uint64]


def background(
    hosts: NDArray[np.uint32], share_ppm: int, mbits: int, span_ns: int, seed: int
) -> Background:
    """Return messages of 64 KiB between random hosts.

    Parameters
    ----------
    hosts
        The hosts that send and receive, at least two.
    share_ppm
        The share of its link's rate at which each sends, in parts per million.
    mbits
        The rate of the hosts' links.
    span_ns
        The time in which the messages start.
    seed
        The seed of receivers and times.

    Raises
    ------
    ValueError
        If there are fewer than two hosts, or the share is not above 0.
    """
    if len(hosts) <= 1 or share_ppm < 1:
        raise ValueError(
            f"{len(hosts)} hosts cannot send at {share_ppm} millionths of their rate"
        )
    period_ns = max(1, _MESSAGE_BYTES * 8000 * _PPM // (mbits * share_ppm))
    count = -(-span_ns // period_ns)
    sender, turn = (each.ravel() for each in np.indices((len(hosts), count)))
    numbers = np.arange(len(sender), dtype=np.uint64)
    drawn = mix64(numbers ^ mix64(np.array([seed], np.uint64)))
    hop = 1 + (drawn % np.uint64(len(hosts) - 1)).astype(np.intp)
    late_ns = mix64(drawn) % np.uint64(period_ns)
    earliest_ns = turn.astype(np.uint64) * np.uint64(period_ns) + late_ns
    order = np.argsort(earliest_ns, kind="stable")
    sender, hop = sender[order], hop[order]
    messages = Messages(
        hosts[sender],
        hosts[(sender + hop) % len(hosts)],
        np.full(len(sender), _MESSAGE_BYTES, np.uint64),
        np.zeros(len(sender) + 1, np.uint64),
        np.zeros(0, np.uint32),
    )
    return Background(messages, earliest_ns[order])
