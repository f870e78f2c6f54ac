# SPDX-License-Identifier: BSD-3-Clause
"""Submit the project's batch jobs to a test Slurm."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster import Slurm
from support import ROOT

_POLL_S = 0.1
# Slurm's states of jobs that have ended.
_ENDED = {
    *("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL"),
    *("DEADLINE", "OUT_OF_MEMORY", "PREEMPTED"),
}


class Batch:
    """A batch job, which is submitted when the object is made.

    Parameters
    ----------
    slurm
        The Slurm to submit to.
    script
        The name of a script in ``slurm/``.
    folder
        The directory from which the job is submitted and in which it leaves results.
    python
        The Python that the job uses; its environment determines the MPI library.
    options
        Options of ``sbatch``.
    settings
        Variables of the job's environment, which the script reads.

    Attributes
    ----------
    folder, results : Path
        The directory above, and the directory for results: the variable RESULTS, or
        ``results`` in `folder`.
    number : str
        The job's number in Slurm.
    """

    def __init__(
        self,
        slurm: Slurm,
        script: str,
        folder: Path,
        python: Path,
        *,
        options: Sequence[str],
        settings: Mapping[str, str],
    ) -> None:
        self._slurm = slurm
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.results = Path(settings.get("RESULTS", folder / "results"))
        variables = {
            "PYTHON": str(python),
            "RESULTS": str(self.results),
            "TMPDIR": "/dev/shm",  # noqa: S108 -- each node's own
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            **settings,
        }
        path = str(ROOT / "slurm" / script)
        printed = slurm.run(
            *("sbatch", "--parsable", "--output=out.txt", *options, path),
            folder=folder,
            variables=variables,
        )
        self.number = printed.strip()

    @property
    def state(self) -> str:
        """The job's state in Slurm, such as RUNNING."""
        shown = self._slurm.run("scontrol", "show", "job", self.number)
        found = re.search(r"JobState=(\w+)", shown)
        assert found is not None, shown
        return found[1]

    @property
    def output(self) -> str:
        """The text that the job has printed so far."""
        path = self.folder / "out.txt"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def exit_code(self) -> int:
        """The exit code that the job's script has written to its results."""
        return int((self.results / "exit_code").read_text())

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The results of those of the job's steps that are done."""
        lines = (self.results / "results.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def wait(self, limit_s: float) -> str:
        """Wait until the job has ended; return its state."""
        self.wait_until(lambda: self.state in _ENDED, limit_s)
        return self.state

    def wait_until(self, holds: Callable[[], bool], limit_s: float) -> None:
        """Wait until `holds()`; raise if the job ends first, or after `limit_s`."""
        deadline_s = time.monotonic() + limit_s
        while True:
            state = self.state
            if holds():
                return
            if state in _ENDED or time.monotonic() > deadline_s:
                raise AssertionError(
                    f"the job is {state}, and what the test waits for has not happened "
                    f"(limit {limit_s} s)\n{self.output}\n{self._slurm.log()}"
                )
            time.sleep(_POLL_S)
