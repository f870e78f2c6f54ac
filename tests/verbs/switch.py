# SPDX-License-Identifier: BSD-3-Clause
"""Count the fates of chunks between the guest's devices, by the kernel's counters."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The match by which tc's u32 knows a chunk. Control messages are multicast too, but one
# of these two bits is set in their index, which is the packet's immediate.
CHUNK = "match ip dst 224.0.0.0/4 match u32 0 0xc0000000 at 48"

# The numbers of tc actions that count for the filters of several devices. tc numbers
# other actions from 1 on.
DROPPED = 1001
ARRIVED = 1002


@contextlib.contextmanager
def counting(ndevices: int) -> Iterator[None]:
    """Count chunks that arrive at the first devices, in one process at a time."""
    lines = []
    for number in range(ndevices):
        device = f"dev net{number}"
        # A device's copy of its own chunks does not pass the switch.
        rules = [
            f"match ip src 10.8.0.{number + 1} action pass",
            f"{CHUNK} action pass index {ARRIVED}",
        ]
        lines.append(f"qdisc add {device} clsact")
        lines += [
            f"filter add {device} ingress pref {pref} protocol ip u32 {rule}"
            for pref, rule in enumerate(rules, 1)
        ]
    _tc(lines)
    try:
        yield
    finally:
        _tc([f"qdisc del dev net{number} clsact" for number in range(ndevices)])


def look() -> dict[str, int]:
    """Count the fates of the copies of chunks, one copy for each receiver.

    Returns
    -------
    dropped
        Copies that the switch has dropped as it was told to.
    overflowed
        Packets of all kinds that the kernel's queue behind the switch had no room for.
    arrived
        Copies that have arrived at their device since `counting` began. Those that the
        device then drops, because no receive is posted, are included: nothing counts
        them.
    """
    queues = _shown("qdisc", "show")
    netem = sum(each["drops"] for each in queues if each["kind"] == "netem")
    counted = {DROPPED: 0, ARRIVED: 0}
    for part in _shown("actions", "list", "action", "gact"):
        for action in part.get("actions", ()):
            if action["index"] in counted:
                counted[action["index"]] += action["stats"]["packets"]
    rows = Path("/proc/net/softnet_stat").read_text().splitlines()
    return {
        "dropped": netem + counted[DROPPED],
        "overflowed": sum(int(row.split()[1], 16) for row in rows),
        "arrived": counted[ARRIVED],
    }


def _shown(*words: str) -> list[dict[str, Any]]:
    said = subprocess.run(
        ["tc", "-statistics", "-json", *words],  # noqa: S607 -- of PATH
        check=True,
        stdout=subprocess.PIPE,
    )
    shown: list[dict[str, Any]] = json.loads(said.stdout)
    return shown


def _tc(lines: list[str]) -> None:
    subprocess.run(
        ["tc", "-batch", "-"],  # noqa: S607 -- of PATH
        input="\n".join([*lines, ""]).encode(),
        check=True,
    )
