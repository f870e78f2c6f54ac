# SPDX-License-Identifier: BSD-3-Clause
"""Count the fates of chunks between the devices, from the kernel's counters."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The match with which tc's u32 filter recognises a chunk: by the group, and by the
# upper two bits of the index, which is the packet's immediate. Control messages are
# multicast too, but one of these bits is set in their index.
CHUNK_MATCH = "match ip dst 224.0.0.0/4 match u32 0 0xc0000000 at 48"

# Numbers of tc actions. Filters of several devices share the action with a number, and
# so its counter. tc's own numbers for actions begin at 1.
DROPPED = 1001
ARRIVED = 1002


@contextlib.contextmanager
def counting(ndevices: int) -> Iterator[None]:
    """Count chunks that arrive at the first `ndevices` devices until the block ends.

    Only one process may do so at a time.
    """
    lines = []
    for number in range(ndevices):
        device = f"dev net{number}"
        # The copies of its own chunks that a device gets do not pass the switch.
        rules = [
            f"match ip src 10.8.0.{number + 1} action pass",
            f"{CHUNK_MATCH} action pass index {ARRIVED}",
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
    """Return the fates of copies of chunks so far; each receiver has one copy.

    Returns
    -------
    dropped
        Copies that the switch dropped because a rule told it to.
    overflowed
        Packets of all kinds for which the kernel's queue after the switch had no room.
    arrived
        Copies that arrived at a device since `counting` began. A device may still drop
        them if no receive is posted; nothing counts that.
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
    """Return the output of tc's command, with counters, as parsed JSON."""
    done = subprocess.run(
        ["tc", "-statistics", "-json", *words],  # noqa: S607 -- of PATH
        check=True,
        stdout=subprocess.PIPE,
    )
    shown: list[dict[str, Any]] = json.loads(done.stdout)
    return shown


def _tc(lines: list[str]) -> None:
    """Have tc carry out commands."""
    subprocess.run(
        ["tc", "-batch", "-"],  # noqa: S607 -- of PATH
        input="\n".join([*lines, ""]).encode(),
        check=True,
    )
