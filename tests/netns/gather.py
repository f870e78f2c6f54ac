# SPDX-License-Identifier: BSD-3-Clause
"""Run one rank of a job: Allgathers whose bytes are checked, and mishaps.

A mishap is what goes wrong on purpose, such as that a rank dies. The program is started
as ``python gather.py FOLDER``. FOLDER/spec.json says what to do (see Spec). The rank
writes its results to FOLDER/RANK.json, and makes FOLDER/RANK.end as its last act.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from pattern import pattern

import mpimcast

POLL_S = 0.002

# The number under which operations after a failure are recorded, above all others.
AFTER_FAILURE_OP = 1000


@dataclasses.dataclass
class Mishap:
    """A mishap on one rank, before or during one of its operations.

    Attributes
    ----------
    what : str
        The name of the method below that makes it happen.
    rank : int
        The rank on which it happens.
    op : int
        The operation, counted from 0, before which the method is called. If `op` is the
        number of operations, the method is called after the last operation.
    for_s : float
        How long the mishap lasts, or how long after the call it begins, in seconds; the
        method says which.
    """

    what: str
    rank: int
    op: int
    for_s: float = 0

    def kill(self) -> None:
        """Kill this process after `for_s`, at once if that is 0."""
        if self.for_s == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._later(os.kill, os.getpid(), signal.SIGKILL)

    def die(self) -> None:
        """End this process with status 0 after `for_s`, without telling other ranks."""
        # At any other status mpirun may also end the other ranks.
        self._later(os._exit, 0)

    def _later(self, act: Callable[..., object], *arguments: object) -> None:
        timer = threading.Timer(self.for_s, act, arguments)
        timer.daemon = True
        timer.start()

    def stop(self) -> None:
        """Stop this process after 20 ms, for `for_s`."""
        _shell(f"sleep 0.02; kill -STOP $0; sleep {self.for_s}; kill -CONT $0")

    def stop_kill(self) -> None:
        """Stop this process after 20 ms, and kill it `for_s` later."""
        _shell(f"sleep 0.02; kill -STOP $0; sleep {self.for_s}; kill -KILL $0")

    def stop_down(self) -> None:
        """Stop this process after 20 ms, and take its network down `for_s` later."""
        _shell(f"sleep 0.02; kill -STOP $0; sleep {self.for_s}; ip link set eth0 down")

    def pulse(self) -> None:
        """Stop this process for 20 ms of every 100 from now on."""
        _shell("while kill -STOP $0; do sleep .02; kill -CONT $0; sleep .08; done")

    def late(self) -> None:
        """Enter the operation `for_s` late."""
        time.sleep(self.for_s)

    def down(self) -> None:
        """Take this host's network down after `for_s`."""
        _shell(f"sleep {self.for_s}; ip link set eth0 down")

    def narrow(self) -> None:
        """Reduce the interface's MTU below a full datagram after `for_s`."""
        _shell(f"sleep {self.for_s}; ip link set eth0 mtu 900")

    def shut(self) -> None:
        """In a guest, take down this rank's RDMA interface after `for_s`."""
        _shell(f"sleep {self.for_s}; ip link set net{self.rank} down")

    def unplug(self) -> None:
        """In a guest, unplug this rank's RDMA device after 20 ms, for `for_s`."""
        port = f"ip link set port{self.rank}"
        _shell(f"sleep 0.02; {port} down; sleep {self.for_s}; {port} up")

    def meet(self) -> None:
        """Tell the test that this rank has arrived here; wait until the test says go.

        The rank makes the file reachedOP in the job's folder; the test answers with the
        file goOP.
        """
        Path(f"reached{self.op}").touch()
        while not Path(f"go{self.op}").exists():
            time.sleep(POLL_S)


_shells: list[subprocess.Popen[bytes]] = []


def _shell(script: str) -> None:
    """Start a shell script, whose $0 is this process's id, and do not wait for it."""
    _shells.append(subprocess.Popen(["/bin/sh", "-c", script, str(os.getpid())]))


@dataclasses.dataclass
class Spec:
    """The work of a job.

    Attributes
    ----------
    settings : dict
        The settings of the communicators.
    proxied : list of int
        The ranks that have a proxy.
    sizes : list of int
        The bytes of a block in each operation, in order.
    repeat : int
        How often to run through all sizes.
    ncomms : int
        The number of communicators. Each runs all operations, in a separate thread.
    use_spare : bool
        Whether, after a failure, the ranks without a mishap use another communicator of
        only those ranks, which was made beforehand.
    open_first : bool
        Whether the ranks open their transport before the first operation. They have
        60 s for that, however short the TIMEOUT in `settings` is.
    use_another : bool
        Whether, after a failure and once the mishaps have ended, all ranks use a new
        communicator.
    verify : bool
        Whether to compare all bytes.
    free : bool
        Whether to free the communicators. If not, they end when MPI is finalised.
    mishaps : list of dict
        The attributes of each Mishap.
    """

    sizes: list[int]
    repeat: int = 1
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    proxied: list[int] = dataclasses.field(default_factory=list)
    ncomms: int = 1
    use_spare: bool = False
    open_first: bool = False
    use_another: bool = False
    verify: bool = True
    free: bool = True
    mishaps: list[dict[str, Any]] = dataclasses.field(default_factory=list)


class Rank:
    """One rank: its operations, its mishaps and its results.

    Attributes
    ----------
    outcome : dict
        The results, as they are written to FOLDER/RANK.json.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.world = MPI.Intracomm(MPI.COMM_WORLD)
        self.rank = self.world.rank
        self.mishaps = [Mishap(**mishap) for mishap in spec.mishaps]
        self.outcome: dict[str, Any] = {
            "host": MPI.Get_processor_name(),
            "wrong": [],
            "seconds": [],
            "errors": [],
        }
        self.settings = dict(spec.settings)
        if self.rank in spec.proxied:
            self.settings["progress"] = "proxy"
        # For communicators to which some ranks come much later than others, such as
        # those that are used after a failure.
        self.patient_settings = {**self.settings, "timeout": 60}

    def gather(self, comm: mpimcast.Intracomm, op: int, nbytes: int) -> None:
        """Do one operation; record its duration and the ranks whose blocks are wrong.

        If the operation raises an error, record the error instead, and raise it again.
        """
        mine = pattern(comm.rank, op, nbytes)
        place = np.zeros(comm.size * nbytes, np.uint8)
        begin_s = time.monotonic()
        try:
            comm.Allgather(mine, place)
        except mpimcast.Error as error:
            self.outcome["errors"].append(
                {
                    "op": op,
                    "kind": type(error).__name__,
                    "text": str(error),
                    "ranks": error.ranks,
                    "seconds": time.monotonic() - begin_s,
                }
            )
            raise
        self.outcome["seconds"].append(time.monotonic() - begin_s)
        if not self.spec.verify:
            return
        for rank in range(comm.size):
            got = place[rank * nbytes : (rank + 1) * nbytes]
            if not np.array_equal(got, pattern(rank, op, nbytes)):
                self.outcome["wrong"].append([op, rank])

    def work(self, comm: mpimcast.Intracomm) -> None:
        """Do all operations on one communicator, with this rank's mishaps."""
        sizes = self.spec.sizes * self.spec.repeat
        for op, nbytes in enumerate(sizes):
            self.suffer(op)
            self.gather(comm, op, nbytes)
        self.suffer(len(sizes))

    def suffer(self, op: int) -> None:
        """Start the mishaps that this rank has before an operation."""
        for mishap in self.mishaps:
            if (mishap.rank, mishap.op) == (self.rank, op):
                getattr(mishap, mishap.what)()

    def run(self) -> None:
        """Do what the spec says, and write the results."""
        comms = [
            mpimcast.Intracomm(self.world.Dup(), **self.settings)
            for _ in range(self.spec.ncomms)
        ]
        if self.spec.open_first:
            comms.append(self.open_transport())
        has_mishap = self.rank in {mishap.rank for mishap in self.mishaps}
        spare = mpimcast.Intracomm(
            self.world.Split(has_mishap), **self.patient_settings
        )
        try:
            self.use(comms[: self.spec.ncomms])
        except mpimcast.Error:
            self.after_failure(comms[0], spare)
            if self.spec.use_another:
                # Freeing the last of these communicators closes their team, so that
                # the new one opens the transport anew.
                while comms:
                    comms.pop().Free()
                comms.append(self.use_another())
        self.outcome["stats"] = comms[0].stats()
        self.outcome["explained"] = str(comms[0].explain(self.spec.sizes[0]))
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.outcome["cpu_seconds"] = usage.ru_utime + usage.ru_stime
        written = Path(f"{self.rank}.new")
        written.write_text(json.dumps(self.outcome))
        # A rename is atomic, so the test never reads half a file.
        written.rename(f"{self.rank}.json")
        if self.spec.free:
            for comm in [*comms, spare]:
                comm.Free()

    def open_transport(self) -> mpimcast.Intracomm:
        """Open a team, which later communicators share; return its communicator."""
        comm = mpimcast.Intracomm(self.world.Dup(), **self.patient_settings)
        comm.Allgather(np.zeros(1), np.zeros(comm.size))
        return comm

    def use(self, comms: list[mpimcast.Intracomm]) -> None:
        """Do all operations on each communicator, with a thread for each.

        Each rank starts its threads in a different order.
        """
        if len(comms) == 1:
            self.work(comms[0])
            return
        threads = [
            threading.Thread(
                target=self.work, args=(comms[(i + self.rank) % len(comms)],)
            )
            for i in range(len(comms))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def after_failure(
        self, comm: mpimcast.Intracomm, spare: mpimcast.Intracomm
    ) -> None:
        """Record how soon a failed communicator fails again; use the spare if asked."""
        begin_s = time.monotonic()
        _expect_error(lambda: self.gather(comm, -1, self.spec.sizes[0]))
        self.outcome["poisoned_seconds"] = time.monotonic() - begin_s
        if self.spec.use_spare:
            self.gather(spare, AFTER_FAILURE_OP, self.spec.sizes[0])
            self.outcome["spare_worked"] = True

    def use_another(self) -> mpimcast.Intracomm:
        """Wait until all mishaps have ended; use a new communicator, and return it."""
        for shell in _shells:
            shell.wait()
        self.world.Barrier()
        comm = mpimcast.Intracomm(self.world.Dup(), **self.patient_settings)
        self.gather(comm, AFTER_FAILURE_OP + 1, self.spec.sizes[0])
        self.outcome["another_worked"] = True
        return comm


def _expect_error(act: Callable[[], None]) -> None:
    """Call `act`, which must raise an mpimcast.Error."""
    try:
        act()
    except mpimcast.Error:
        return
    raise RuntimeError("an operation succeeded on a communicator that had failed")


def main() -> None:
    """Run one rank."""
    os.chdir(sys.argv[1])
    rank = Rank(Spec(**json.loads(Path("spec.json").read_text())))
    rank.run()
    MPI.Finalize()
    Path(f"{rank.rank}.end").touch()


if __name__ == "__main__":
    main()
