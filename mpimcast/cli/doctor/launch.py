# SPDX-License-Identifier: BSD-3-Clause
"""Checks that all started processes form one MPI world, with equal software."""

from __future__ import annotations

import os
import platform
import socket
from importlib import metadata
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast import __version__
from mpimcast._mpi.library import library_name
from mpimcast._settings.config import Config
from mpimcast._settings.ignored import ignored_variables
from mpimcast._support.naming import usual_and_deviants
from mpimcast.cli.doctor.finding import Finding
from mpimcast.cli.doctor.start import mpi_type, mpi_type_wanted, mpi_types_there
from mpimcast.cli.node import node_name
from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mpimcast.cli.doctor.start import Start
    from mpimcast.cli.doctor.world import World

Facts = dict[str, Any]

LIBRARY = "the MPI library's own collectives"

# Facts that must be equal on all ranks, then facts that should be, each with advice on
# how to make it so.
_SAME = {
    "mpi": "have every node run the same MPI library: load the same module, or use the "
    "same environment",
    "mpimcast": "install the same mpimcast on every node: version {}",
    "wire": "build the same mpimcast on every node: wire version {}",
}
_ALIKE = {
    "mpi4py": "pip install mpi4py=={}, on every node",
    "python": "start the same python on every node: version {}",
}


def check_size(start: Start) -> Iterator[Finding]:
    """Compare the world's size with the number of processes that were started."""
    size = MPI.COMM_WORLD.size
    if size == start.size:
        return
    node, name = node_name(), library_name()
    if start.by == "srun":
        now, wanted = mpi_type(os.environ), mpi_type_wanted(name)
        there = mpi_types_there()
        mend = f"srun --mpi={wanted} ... (this was --mpi={now})"
        mend += f"; srun --mpi=list says: {there}" if there else ""
    else:
        mend = f"start it with {name}'s own mpirun, or with srun"
    what = f"{start.by} started {start.size} processes, which are not one MPI world"
    whole = "each is alone" if size == 1 else f"this one has {size} ranks"
    yield Finding(node, "launch", "unusable", f"{what}: {whole} in {name}", mend)


def check_alone(start: Start, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Report if a batch script has started a single process outside its tasks."""
    ntasks = environment.get("SLURM_NTASKS", "1")
    if start.by or ntasks == "1":
        return
    what = f"started alone in a job of {ntasks} tasks: only this node is checked"
    mend = "srun python -m mpimcast doctor"
    yield Finding(node_name(), "launch", "note", what, mend)


def node_names(told: Sequence[Facts]) -> list[str]:
    """Return the name of each rank's node: Slurm's name, if that can be trusted.

    MPICH's launcher hands the variables of its own node to all ranks.
    """
    hosts: dict[str, str] = {}
    for fact in told:
        if hosts.setdefault(fact["node"], fact["host"]) != fact["host"]:
            return [each["host"] for each in told]
    return [fact["node"] for fact in told]


def facts() -> Facts:
    """Return this rank's facts: its node, its software and its settings."""
    try:
        from mpimcast._native import core
    except ImportError as error:
        wire, missing = None, f"mpimcast's C library cannot be loaded: {error}"
    else:
        wire, missing = core.wire_version(), ""
    try:
        config = Config.read({})
        settings, falls_back = config.agreed(), "mpi" in config.transports
    except ConfigError as error:
        settings, missing, falls_back = {}, str(error), False
    return {
        "node": node_name(),
        "host": socket.gethostname(),
        "mpi": library_name(),
        "mpi4py": metadata.version("mpi4py"),
        "python": platform.python_version(),
        "mpimcast": __version__,
        "wire": wire,
        "settings": settings,
        "ignored": ignored_variables(),
        "missing": missing,
        # Whether the MPI library takes over where no transport can be opened.
        "falls_back": falls_back,
    }


def check_alike(world: World, told: Sequence[Facts]) -> Iterator[Finding]:
    """Name the ranks that differ from most others, and those that lack something."""
    for rank, fact in enumerate(told):
        if fact["missing"]:
            yield Finding(
                world.nodes[rank],
                "launch",
                "degraded" if fact["falls_back"] else "unusable",
                f"rank {rank}: {fact['missing']}",
                f"on {world.nodes[rank]}: python -m mpimcast info",
                LIBRARY,
                leave_out=True,
            )
    whole = [rank for rank, fact in enumerate(told) if not fact["missing"]]
    for name, mend in (_SAME | _ALIKE).items():
        values = [told[rank][name] for rank in whole]
        severity = "unusable" if name in _SAME else "note"
        if name == "wire" and told[0]["falls_back"]:
            severity = "degraded"
        yield from _differ(world, whole, name, values, mend=mend, severity=severity)
    names = {name for rank in whole for name in told[rank]["settings"]}
    for name in sorted(names):
        values = [told[rank]["settings"].get(name) for rank in whole]
        mend = (
            f"export MPIMCAST_{name}={{}} on every rank: mpirun -x, srun --export=ALL"
        )
        yield from _differ(
            world, whole, f"MPIMCAST_{name}", values, mend=mend, severity="unusable"
        )


def check_ignored(world: World, told: Sequence[Facts]) -> Iterator[Finding]:
    """Report each variable that looks like a setting but is none."""
    for sentence in dict.fromkeys(each for fact in told for each in fact["ignored"]):
        nodes = world.names(
            rank for rank, fact in enumerate(told) if sentence in fact["ignored"]
        )
        everywhere = len(nodes) == len(world.names(range(world.size)))
        for node in [""] if everywhere else nodes:
            yield Finding(node, "launch", "note", sentence, "")


def _differ(
    world: World,
    whole: Sequence[int],
    name: str,
    values: Sequence[Any],
    *,
    mend: str,
    severity: str,
) -> Iterator[Finding]:
    """Yield a finding for each node where a value differs from that of most ranks."""
    if not values:
        return
    usual, odd = usual_and_deviants(values)
    for node in world.names(whole[place] for place in odd):
        place = next(place for place in odd if world.nodes[whole[place]] == node)
        yield Finding(
            node,
            "launch",
            severity,
            f"rank {whole[place]}: {name} is {values[place]}, on most ranks {usual}",
            mend.format(usual),
            LIBRARY,
            leave_out=severity != "note",
        )
