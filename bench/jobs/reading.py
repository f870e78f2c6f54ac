# SPDX-License-Identifier: BSD-3-Clause
"""Readings of the counters of links, of loss and of the rival stream.

They are taken before and after the operations of a task.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bench.jobs.setup import Setup


def read(setup: Setup) -> dict[str, dict[str, int]]:
    """Return the time, and the counts since the setup was made, by what they count.

    On one machine there is nothing to count.
    """
    if setup.cluster is None:
        return {}
    ports = setup.cluster.ports()
    names = [f"{kind}{number}" for kind in ("host", "to") for number in setup.numbers]
    names += [name for name in ports if name.startswith("trunk")]
    counts = {name: asdict(ports[name]) for name in names}
    if setup.loss is not None:
        buffers, nbytes = setup.loss.dropped()
        counts["lost"] = {"buffers": buffers, "bytes": nbytes}
    if setup.rival is not None:
        counts["rival"] = {"bytes": setup.rival.received_bytes()}
    counts["clock"] = {"ns": time.monotonic_ns()}
    return counts


def differences(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Return what was counted between two readings, as fields of a measurement."""
    spent = {
        name: {key: after[name][key] - before[name][key] for key in before[name]}
        for name in before
    }
    return {
        "lost": spent.pop("lost", {}),
        "rival_bytes": spent.pop("rival", {"bytes": 0})["bytes"],
        "span_s": 1e-9 * spent.pop("clock", {"ns": 0})["ns"],
        "ports": spent,
    }
