# SPDX-License-Identifier: BSD-3-Clause
"""Run programs without us and with us, and compare how they end and what they print."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support import BIN, MPICH_BIN, mpirun, require_tool, run_unchecked

LIBRARIES = pytest.mark.parametrize(
    "environment", [BIN, MPICH_BIN], ids=["openmpi", "mpich"]
)

# The settings of the sides that have us: every collective by multicast, and as we come.
MULTICAST = {"MPIMCAST_TRANSPORT": "udp", "MPIMCAST_MIN_BYTES": "0"}
DEFAULTS: dict[str, str] = {}

# What differs between two runs of one program: times, rates, addresses, process ids.
_VARYING = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]?\d+)?")

# Every rank writes to a file of its own: through the launcher what they print at the
# same time becomes mixed, also in the middle of a word. Nor does the launcher hand rank
# 0 its input: Open MPI's may lose that of a rank that is slow to begin.
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
        What stands behind ``python``, or behind ``python -m mpimcast run``.
    folder
        Where it runs.
    given
        Its standard input.
    varying
        Whether the numbers that it prints differ from run to run.
    limit_s
        How long a run may take.
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
    program: Program, nranks: int, environment: Path, settings: dict[str, str] | None
) -> tuple[int, str]:
    """Run a program, with us if `settings` are given.

    Returns
    -------
    status, output
        The launcher's exit status; what it printed, then what the ranks did, one
        behind the other.
    """
    require_tool(str(environment / "mpirun"))
    ours = () if settings is None else ("-m", "mpimcast", "run")
    with tempfile.TemporaryDirectory() as folder:
        given, outputs = Path(folder, "given"), Path(folder, "outputs")
        given.write_text(program.given)
        outputs.mkdir()
        status, said = run_unchecked(
            [
                *mpirun(nranks, *_APART, environment=environment),
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
    """Return an output's words, numbers and signs; ranks print in any order."""
    return Counter(_TOKEN.findall(_VARYING.sub("#", said) if program.varying else said))


def compare(
    program: Program,
    nranks: int,
    environment: Path,
    sides: tuple[dict[str, str], ...] = (MULTICAST,),
) -> None:
    """Check that a program succeeds, and does and prints with us what it does without.

    Parameters
    ----------
    program, nranks, environment
        What to run, on how many ranks, and the folder of the launcher and Python.
    sides
        The settings to run it with.
    """
    status, alone = start(program, nranks, environment, None)
    assert status == 0, f"it fails without us:\n{alone}"
    expected = tokens(program, alone)
    for settings in sides:
        status, said = start(program, nranks, environment, settings)
        assert status == 0, f"{settings}:\n{said}"
        found = tokens(program, said)
        assert found == expected, (
            f"{settings}: lacks {expected - found}, has {found - expected} "
            f"besides, in:\n{said}\nwithout us:\n{alone}"
        )
