# SPDX-License-Identifier: BSD-3-Clause
"""The doctor's findings on RDMA devices."""

from __future__ import annotations

import json

import pytest
import support

from bench.guest.guest import Guest

NRANKS = 3

# `auto` would leave everything to the MPI library, since all ranks are on one host.
TRANSPORTS = "verbs,udp,mpi"


@pytest.mark.long
def test_healthy(guest: Guest) -> None:
    """The doctor finds the devices usable; each rank reads its neighbour's memory."""
    doctor = ["-m", "mpimcast", "doctor", "--json", "report.json"]
    command = [*support.mpirun(NRANKS), *doctor]
    output = guest.run(command, limit_s=60, MPIMCAST_TRANSPORT=TRANSPORTS)
    document = json.loads((guest.work / "report.json").read_text())
    assert document["verdict"] == "usable", output
    assert document["transport"] == "verbs"
    assert document["mtu"]["full_bytes"] == 4080
    assert all(chunks > 0 for chunks in document["reads"]["chunks"].values()), output


@pytest.mark.long
def test_no_device_on_a_rank(guest: Guest) -> None:
    """A rank without a device is named; the report says that a job would use UDP."""
    hide_device = (
        "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then export MPIMCAST_NET_DEVICES=lo; fi"
    )
    *launcher, python = support.mpirun(NRANKS)
    program = ["sh", "-c", f'{hide_device}; exec "$@"', "sh", python]
    doctor = ["-m", "mpimcast", "doctor", "multicast", "--json", "report.json"]
    command = [*launcher, *program, *doctor]
    code, output = guest.run_unchecked(
        command, limit_s=60, MPIMCAST_TRANSPORT=TRANSPORTS
    )
    assert code == 3, output
    document = json.loads((guest.work / "report.json").read_text())
    (finding,) = (each for each in document["findings"] if each["severity"] != "note")
    assert "verbs cannot be opened; rank 1: RDMA" in finding["what"]
    assert document["degraded_to"] == "udp, as verbs cannot be opened"
