# SPDX-License-Identifier: BSD-3-Clause
"""Launch MPI programs on a cluster, with one rank per host."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.testbed.cluster import Cluster

# The launchers start this instead of ssh. Its arguments are options, a host, and a
# command line for a shell there. WRAP holds words that precede that shell.
_AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
pid=$(cat "/run/$1.pid")
shift
# Session folders hold process numbers, which other hosts have too.
export TMPDIR=/dev/shm
exec nsenter --target="$pid" --all ${WRAP-} /bin/sh -c "$*" </dev/null
"""


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
    cluster: Cluster,
    launcher: Launcher,
    program: Sequence[str | Path],
    *,
    numbers: Sequence[int],
    folder: Path,
    variables: Mapping[str, str] | None = None,
    wrap: str = "",
    outlive: bool = False,
) -> list[str]:
    """Return a command line that runs a Python program.

    Parameters
    ----------
    cluster
        The cluster to run on.
    launcher
        The launcher of the MPI library.
    program
        The arguments of Python.
    numbers
        The host of each rank.
    folder
        The directory to start the program in; its path has no blanks.
    variables
        Variables of the ranks' environment.
    wrap
        A command that runs the ranks' launcher on their hosts, such as ``setpriv``.
    outlive
        Whether ranks go on, and end well, when another has died. By default TCP
        prevents that: Open MPI ends the ranks at once, and MPICH's Finalize waits
        forever.
    """
    environment = _without_blanks(cluster, launcher.environment)
    cluster.head.write("/run/agent", _AGENT)
    cluster.head.run("chmod", "755", "/run/agent")
    names = [cluster.hosts[number].name for number in numbers]
    write = {"openmpi": _openmpi, "mpich": _mpich}[launcher.name]
    start = write(cluster, environment, names, variables or {}, outlive=outlive)
    python = environment / "python"
    return [
        *cluster.head.enter(folder),
        *("env", f"WRAP={wrap}", "TMPDIR=/dev/shm"),
        *start,
        str(python),
        *map(str, program),
    ]


def _without_blanks(cluster: Cluster, environment: Path) -> Path:
    """Return a path of the programs' folder that has no blanks."""
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
    cluster: Cluster,
    environment: Path,
    names: Sequence[str],
    variables: Mapping[str, str],
    *,
    outlive: bool,
) -> list[str]:
    cluster.head.write("/run/hostfile", "".join(f"{n} slots=1\n" for n in names))
    settings = {"pml": "ob1", "btl": "tcp,self", "btl_tcp_if_include": "eth0"}
    if outlive:
        settings = {"pml": "cm", "mtl": "ofi", "mtl_ofi_provider_include": "tcp"}
        # The status is 0 whatever happens to single ranks; Finalize waits for no rank.
        settings["async_mpi_finalize"] = "1"
        variables = {"FI_TCP_IFACE": "eth0", **variables}
    return [
        *("OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"),
        *(str(environment / "mpirun"), "--prtemca", "plm_ssh_agent", "/run/agent"),
        *("--hostfile", "/run/hostfile", "-n", str(len(names))),
        *("--map-by", "node", "--bind-to", "none"),
        *(["--enable-recovery"] if outlive else []),
        *(word for k, v in settings.items() for word in ("--mca", k, v)),
        *(word for k, v in variables.items() for word in ("-x", f"{k}={v}")),
    ]


def _mpich(
    cluster: Cluster,
    environment: Path,
    names: Sequence[str],
    variables: Mapping[str, str],
    *,
    outlive: bool,
) -> list[str]:
    cluster.head.write("/run/hostfile", "".join(f"{n}:1\n" for n in names))
    # Without this MPICH would find the ranks on one machine, and use its memory.
    settings = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}
    if outlive:
        settings = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
        settings["FI_TCP_IFACE"] = "eth0"
    settings |= variables
    return [
        *(str(environment / "mpiexec"), "-launcher", "ssh"),
        *("-launcher-exec", "/run/agent", "-f", "/run/hostfile"),
        *("-n", str(len(names))),
        *(["-disable-auto-cleanup"] if outlive else []),
        *(word for k, v in settings.items() for word in ("-genv", k, v)),
    ]
