# SPDX-License-Identifier: BSD-3-Clause
"""Run programs without and with mpimcast, and compare their status and output."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support import BIN, MPICH_BIN, mpirun, require_tool, run_unchecked

LIBRARIES = pytest.mark.parametrize(
    "bin_folder", [BIN, MPICH_BIN], ids=["openmpi", "mpich"]
)

# Settings of runs with mpimcast: one for every collective by multicast, then defaults.
MULTICAST = {"MPIMCAST_TRANSPORT": "udp", "MPIMCAST_MIN_BYTES": "0"}
DEFAULTS: dict[str, str] = {}

# Text that differs between two runs of a program: times, rates, addresses, process ids.
_VARYING = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]?\d+)?")

# Every rank writes to a separate file, since a launcher mixes what ranks print at the
# same time, even in the middle of a word. Rank 0 does not get its input through the
# launcher either: Open MPI's may lose the input of a rank that starts slowly.
_SCRIPT = (
    '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || GIVEN=/dev/null; '
    'exec "$@" <"$GIVEN" >"$(mktemp -p "$OUTPUTS")" 2>&1'
)
_APART = ("sh", "-c", _SCRIPT, "sh")

_TOKEN = re.compile(r"\d+(?:\.\d+)?|[^\W\d]+|\S")


@dataclass
class Program:
    """A program that is started under a launcher.

    Attributes
    ----------
    arguments
        Arguments of ``python``, or of ``python -m mpimcast run``.
    folder
        Its working directory.
    given
        Its standard input, for rank 0.
    varying
        Whether the numbers that it prints differ from run to run.
    limit_s
        Seconds that a run may take.
    env
        Variables to set.
    """

    arguments: tuple[str, ...]
    folder: Path
    given: str = ""
    varying: bool = False
    limit_s: float = 120
    env: dict[str, str] = field(default_factory=dict)


def start(
    program: Program, nranks: int, bin_folder: Path, settings: dict[str, str] | None
) -> tuple[int, str]:
    """Run a program, with mpimcast if `settings` are given.

    Returns
    -------
    status, output
        The launcher's exit status; what it printed, then what the ranks printed, one
        after the other.
    """
    require_tool(str(bin_folder / "mpirun"))
    ours = () if settings is None else ("-m", "mpimcast", "run")
    with tempfile.TemporaryDirectory() as folder:
        given, outputs = Path(folder, "given"), Path(folder, "outputs")
        given.write_text(program.given)
        outputs.mkdir()
        status, said = run_unchecked(
            [
                *mpirun(nranks, *_APART, bin_folder=bin_folder),
                *ours,
                *program.arguments,
            ],
            limit_s=program.limit_s,
            cwd=program.folder,
            MPLBACKEND="agg",
            OMP_NUM_THREADS="1",
            OPENBLAS_NUM_THREADS="1",
            GIVEN=str(given),
            OUTPUTS=str(outputs),
            **program.env,
            **(settings or {}),
        )
        texts = [file.read_text(errors="replace") for file in sorted(outputs.iterdir())]
    return status, "\n".join([said, *texts])


def tokens(program: Program, said: str) -> Counter[str]:
    """Count an output's words, numbers and signs; their order differs between runs."""
    return Counter(_TOKEN.findall(_VARYING.sub("#", said) if program.varying else said))


def compare(
    program: Program,
    nranks: int,
    bin_folder: Path,
    sides: tuple[dict[str, str], ...] = (MULTICAST,),
) -> None:
    """Check that a program succeeds, and prints with mpimcast what it prints without.

    Parameters
    ----------
    program, nranks, bin_folder
        What to run, on how many ranks, and the folder of the launcher and Python.
    sides
        The settings of the runs with mpimcast.
    """
    status, alone = start(program, nranks, bin_folder, None)
    assert status == 0, f"it fails without us:\n{alone}"
    expected = tokens(program, alone)
    for settings in sides:
        status, said = start(program, nranks, bin_folder, settings)
        assert status == 0, f"{settings}:\n{said}"
        found = tokens(program, said)
        assert found == expected, (
            f"{settings}: lacks {expected - found}, has {found - expected} "
            f"besides, in:\n{said}\nwithout us:\n{alone}"
        )
