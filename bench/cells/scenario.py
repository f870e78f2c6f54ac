# SPDX-License-Identifier: BSD-3-Clause
"""A scenario of a cell: a collective, its ranks and the network between them."""

from __future__ import annotations

from typing import NamedTuple

from bench.jobs.measurement import Measurement, Network
from bench.jobs.payload import payload_bytes


class Scenario(NamedTuple):
    """A collective of a cell, on a number of ranks and a network."""

    cell: str
    collective: str
    nranks: int
    network: Network

    def title(self) -> str:
        """Return the scenario in words, for a heading."""
        network = self.network
        words = [f"{self.collective}, P = {self.nranks}"]
        if network.ranks_per_host > 1:
            words.append(f"{network.ranks_per_host} ranks a host")
        if network.kind == "node":
            words.append("one machine")
        elif network.kind == "verbs":
            words.append("RDMA in software")
        else:
            words.append(_mbit("links", network.rate_mbit))
        if network.switches == 2:
            words.append(_mbit("trunk", network.trunk_mbit))
            words.append(f"{network.order} order")
        if network.loss:
            words.append(f"{100 * network.loss:g} % lost at every port")
        if network.rival:
            words.append("beside a TCP stream")
        return ", ".join(words)

    def payload_bytes(self, block_bytes: int) -> int:
        """Return the bytes that each host has to receive, without headers."""
        each = self.network.ranks_per_host
        return payload_bytes(self.collective, self.nranks, block_bytes, each)


def scenario_of(measurement: Measurement) -> Scenario:
    """Return the scenario of a measurement."""
    return Scenario(
        measurement.cell,
        measurement.collective,
        measurement.nranks,
        measurement.network,
    )


def _mbit(what: str, rate_mbit: int | None) -> str:
    return f"{what} {'unlimited' if rate_mbit is None else f'{rate_mbit} Mbit/s'}"
