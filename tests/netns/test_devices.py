# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on devices, between hosts of several ranks that share memory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import software
import support
from job import OPENMPI

from bench.testbed.cluster import Cluster
from bench.testbed.program import Program

PLACES = (0, 1, 0, 1, 2)
NCASES = 20


@pytest.mark.timeout(180)
def test_random(cluster: Cluster, tmp_path: Path) -> None:
    """Results are right, whether a rank leads its host or not, though data is lost."""
    library = software.build(tmp_path, "CUDA")
    variables = {
        "MPIMCAST_TEST_DRIVER": str(library),
        "DEVICE_SEED": str(support.choose_seed()),
        "DEVICE_DELAY_US": "300",
        "PYTHONPATH": str(software.HERE),
    }
    arguments = [software.HERE / "random_rank.py", str(support.choose_seed())]
    arguments += [str(NCASES), "transport=udp", "fault=loss=0.05", "timeout=60"]
    program = Program(arguments, tmp_path, variables)
    command = OPENMPI.command(cluster, PLACES, program)
    status, said = support.run_unchecked(command, limit_s=150)
    assert status == 0, said
    assert len(re.findall(f"{NCASES} cases are right", said)) == len(PLACES), said
