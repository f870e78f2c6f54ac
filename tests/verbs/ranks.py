# SPDX-License-Identifier: BSD-3-Clause
"""Run jobs of gather.py in a guest, each rank on an RDMA device of its own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import support
from results import Results, read

from bench.guest.guest import Guest

PROGRAM = support.ROOT / "tests/netns/gather.py"

# Runs gather.py with the group and the Q_Key in the variables GROUP and QKEY.
KEYED = support.ROOT / "tests/verbs/keyed.py"

# The payload of a device's chunks: packets of 4096 bytes, less the wire header.
CHUNK_BYTES = 4080

# With these settings mpimcast carries out every operation, and only over RDMA devices.
# The timeout is long, so that no rank fails for lack of a processor.
SETTINGS = {"transport": "verbs", "min_bytes": 0, "timeout": 40}

# Options of mpirun that let ranks outlive others, and Finalize wait for no rank.
OUTLIVE = ("--enable-recovery", "--mca", "async_mpi_finalize", "1")

# Variables of a job's environment: where programs find the modules that they import.
VARIABLES = {"PYTHONPATH": str(support.ROOT / "tests/netns")}


def gather(
    guest: Guest,
    nranks: int,
    *,
    limit_s: float = 60,
    failing: bool = False,
    without: Sequence[int] = (),
    beside: str = "",
    **options: Any,
) -> Results:
    """Run ranks of gather.py; check their bytes, and return their results.

    Parameters
    ----------
    guest
        The guest to run in.
    nranks
        The number of ranks; each uses the next device.
    limit_s
        How long the job may take, in seconds.
    failing
        Whether ranks may see errors.
    without
        Ranks that leave no result.
    beside
        A script that a shell runs in the ranks' folder while the job runs. The
        variable ``job`` is the launcher's process id.
    **options
        See job.
    """
    folder, command = job(guest, nranks, **options)
    if beside:
        script = f'"$@" & job=$!; cd {folder}; {beside}\nwait $job'
        command = ["sh", "-c", script, "sh", *command]
    status, output = guest.run_unchecked(
        command, limit_s=limit_s, cwd=support.ROOT, **VARIABLES
    )
    ranks = [rank for rank in range(nranks) if rank not in without]
    return read(folder, ranks, failing=failing, why=f"{status}\n{output}")


def job(
    guest: Guest,
    nranks: int,
    *,
    outlive: bool = False,
    wrap: str = "",
    program: Path = PROGRAM,
    **spec: Any,
) -> tuple[Path, list[str | Path]]:
    """Make the folder of a new job; return it, and the command that runs the job.

    Parameters
    ----------
    guest
        The guest to run in.
    nranks
        The number of ranks; each uses the next device.
    outlive
        Whether ranks go on when one has died.
    wrap
        A script that each rank's shell runs before the program.
    program
        What the ranks run, with the folder as argument.
    **spec
        The content of spec.json: the attributes of gather.Spec, or what the program
        reads. Its `settings` are added to SETTINGS.
    """
    spec["settings"] = {**SETTINGS, **spec.get("settings", {})}
    folder = Path(tempfile.mkdtemp(dir=guest.work))
    (folder / "spec.json").write_text(json.dumps(spec))
    *launcher, python = support.mpirun(nranks, *(OUTLIVE if outlive else ()))
    shell = ["sh", "-c", f'{wrap}\nexec "$@"', "sh"] if wrap else []
    return folder, [*launcher, *shell, python, program, folder]


@contextmanager
def losing(
    guest: Guest, number: int, netem: str, *, multicast_only: bool = True
) -> Iterator[None]:
    """Have the switch's port to a device drop, delay or reorder packets for a while.

    Parameters
    ----------
    guest
        The guest whose switch it is.
    number
        The device's number.
    netem
        The arguments of tc's netem.
    multicast_only
        Whether this affects multicast only.
    """
    port = f"port{number}"
    if multicast_only:
        script = (
            f"tc qdisc add dev {port} root handle 1: prio bands 2 "
            f"priomap {' '.join(['0'] * 16)}; "
            f"tc qdisc add dev {port} parent 1:2 handle 2: netem {netem}; "
            f"tc filter add dev {port} parent 1: protocol ip u32 "
            "match ip dst 224.0.0.0/4 flowid 1:2"
        )
    else:
        script = f"tc qdisc add dev {port} root netem {netem}"
    guest.run(["sh", "-ec", script], limit_s=20)
    try:
        yield
    finally:
        guest.run(["tc", "qdisc", "del", "dev", port, "root"], limit_s=20)


def dropped(guest: Guest, number: int) -> int:
    """Return how many packets netem has dropped at the port to a device."""
    output = guest.run(
        ["tc", "-statistics", "-json", "qdisc", "show", "dev", f"port{number}"],
        limit_s=20,
    )
    return sum(each["drops"] for each in json.loads(output) if each["kind"] == "netem")
