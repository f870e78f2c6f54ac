# SPDX-License-Identifier: BSD-3-Clause
"""This node's name."""

from __future__ import annotations

import os
import socket


def node_name() -> str:
    """Return Slurm's name of this node, else the host's own name."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()
