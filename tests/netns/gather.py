# SPDX-License-Identifier: BSD-3-Clause
"""Run one rank of a job: Allgathers whose bytes are checked, and injected mishaps.

Started as ``python gather.py FOLDER``. FOLDER/spec.json says what to do (see Spec).
The rank writes its results to FOLDER/RANK.json, and makes FOLDER/RANK.end as its last
act.
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


@dataclasses.dataclass
class Mishap:
    """Something that goes wrong on one rank, before or during one of its operations.

    Attributes
    ----------
    what : str
        The name of the method to call.
    rank, op : int
        The rank, and the operation before which the method is called. The number of
        all operations means after the last one.
    for_s : float
        The duration of the mishap, or its delay, in seconds.
    """

    what: str
    rank: int
    op: int
    for_s: float = 0

    def kill(self) -> None:
        """Kill this process: at once if `for_s` is 0, else after it."""
        if self.for_s == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._later(os.kill, os.getpid(), signal.SIGKILL)

    def die(self) -> None:
        """End this process with status 0 after `for_s`, without telling other ranks."""
        # mpirun notices any other status, and may then end the other ranks too.
        self._later(os._exit, 0)

    def _later(self, act: Callable[..., object], *arguments: object) -> None:
        timer = threading.Timer(self.for_s, act, arguments)
        timer.daemon = True
        timer.start()

    def stop(self) -> None:
        """Stop this process after 20 ms, and let it go on after `for_s`."""
        _shell(f"sleep 0.02; kill -STOP $0; sleep {self.for_s}; kill -CONT $0")

    def stop_kill(self) -> None:
        """Stop this process after 20 ms, and kill it after `for_s`."""
        _shell(f"sleep 0.02; kill -STOP $0; sleep {self.for_s}; kill -KILL $0")

    def stop_down(self) -> None:
        """Stop this process after 20 ms, and take its network down after `for_s`."""
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
        """Take down, in a guest, this rank's RDMA interface after `for_s`."""
        _shell(f"sleep {self.for_s}; ip link set net{self.rank} down")

    def unplug(self) -> None:
        """Unplug, in a guest, this rank's RDMA device for `for_s`."""
        port = f"ip link set port{self.rank}"
        _shell(f"sleep 0.02; {port} down; sleep {self.for_s}; {port} up")

    def meet(self) -> None:
        """Tell the test that this rank is here, and wait until it says go."""
        Path(f"reached{self.op}").touch()
        while not Path(f"go{self.op}").exists():
            time.sleep(POLL_S)


_shells: list[subprocess.Popen[bytes]] = []


def _shell(script: str) -> None:
    _shells.append(subprocess.Popen(["/bin/sh", "-c", script, str(os.getpid())]))


@dataclasses.dataclass
class Spec:
    """The work of a job.

    Attributes
    ----------
    settings : dict
        The settings of the communicators.
    sizes : list of int
        The bytes of a block in each operation, in order.
    repeat : int
        How often to run through all sizes.
    ncomms : int
        The number of communicators that run all operations, each in its own thread.
    spare : bool
        Whether the ranks without a mishap use another communicator after a failure.
    warm : bool
        Whether the ranks open their transport beforehand, with a timeout of 60 s.
    again : bool
        Whether all ranks use a new communicator after a failure, once the mishaps end.
    verify : bool
        Whether to compare all bytes.
    free : bool
        Whether to free the communicators; otherwise they end with MPI.
    """

    sizes: list[int]
    repeat: int = 1
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    ncomms: int = 1
    spare: bool = False
    warm: bool = False
    again: bool = False
    verify: bool = True
    free: bool = True
    mishaps: list[dict[str, Any]] = dataclasses.field(default_factory=list)


class Rank:
    """One rank: its operations, its mishaps and its results."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.world = MPI.Intracomm(MPI.COMM_WORLD)
        self.rank = self.world.rank
        self.mishaps = [Mishap(**mishap) for mishap in spec.mishaps]
        self.said: dict[str, Any] = {
            "host": MPI.Get_processor_name(),
            "wrong": [],
            "seconds": [],
            "errors": [],
        }
        # Ranks reach the communicators used after a failure at different times.
        self.patient = {**spec.settings, "timeout": 60}

    def gather(self, comm: mpimcast.Intracomm, op: int, nbytes: int) -> None:
        """Do one operation and record its time, its error and its wrong bytes."""
        mine = pattern(comm.rank, op, nbytes)
        place = np.zeros(comm.size * nbytes, np.uint8)
        begin_s = time.monotonic()
        try:
            comm.Allgather(mine, place)
        except mpimcast.Error as error:
            self.said["errors"].append(
                {
                    "op": op,
                    "kind": type(error).__name__,
                    "text": str(error),
                    "ranks": error.ranks,
                    "seconds": time.monotonic() - begin_s,
                }
            )
            raise
        self.said["seconds"].append(time.monotonic() - begin_s)
        if not self.spec.verify:
            return
        for rank in range(comm.size):
            got = place[rank * nbytes : (rank + 1) * nbytes]
            if not np.array_equal(got, pattern(rank, op, nbytes)):
                self.said["wrong"].append([op, rank])

    def work(self, comm: mpimcast.Intracomm) -> None:
        """Do all operations on one communicator."""
        sizes = self.spec.sizes * self.spec.repeat
        for op, nbytes in enumerate(sizes):
            self.suffer(op)
            self.gather(comm, op, nbytes)
        self.suffer(len(sizes))

    def suffer(self, op: int) -> None:
        """Start this rank's mishaps that belong before an operation."""
        for mishap in self.mishaps:
            if (mishap.rank, mishap.op) == (self.rank, op):
                getattr(mishap, mishap.what)()

    def run(self) -> None:
        """Do what the spec says."""
        comms = [
            mpimcast.Intracomm(self.world.Dup(), **self.spec.settings)
            for _ in range(self.spec.ncomms)
        ]
        if self.spec.warm:
            comms.append(self.warm())
        hurt = self.rank in {mishap.rank for mishap in self.mishaps}
        spare = mpimcast.Intracomm(self.world.Split(hurt), **self.patient)
        try:
            self.use(comms[: self.spec.ncomms])
        except mpimcast.Error:
            self.fail(comms[0], spare)
            if self.spec.again:
                # The team that these communicators share ends with the last of them.
                while comms:
                    comms.pop().Free()
                comms.append(self.another())
        self.said["stats"] = comms[0].stats()
        self.said["explained"] = str(comms[0].explain(self.spec.sizes[0]))
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.said["cpu_seconds"] = usage.ru_utime + usage.ru_stime
        written = Path(f"{self.rank}.new")
        written.write_text(json.dumps(self.said))
        # A rename is atomic: the test never reads half a file.
        written.rename(f"{self.rank}.json")
        if self.spec.free:
            for comm in [*comms, spare]:
                comm.Free()

    def warm(self) -> mpimcast.Intracomm:
        """Return a communicator that has opened the transport for others to share."""
        comm = mpimcast.Intracomm(self.world.Dup(), **self.patient)
        comm.Allgather(np.zeros(1), np.zeros(comm.size))
        return comm

    def use(self, comms: list[mpimcast.Intracomm]) -> None:
        """Work on all communicators at once; each rank starts on a different one."""
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

    def fail(self, comm: mpimcast.Intracomm, spare: mpimcast.Intracomm) -> None:
        """Check that the failed communicator fails at once; use the spare, if asked."""
        begin_s = time.monotonic()
        _raised(lambda: self.gather(comm, -1, self.spec.sizes[0]))
        self.said["poisoned_seconds"] = time.monotonic() - begin_s
        if self.spec.spare:
            self.gather(spare, 1000, self.spec.sizes[0])
            self.said["spare"] = True

    def another(self) -> mpimcast.Intracomm:
        """Return a new communicator of all ranks, used once the mishaps have ended."""
        for shell in _shells:
            shell.wait()
        self.world.Barrier()
        comm = mpimcast.Intracomm(self.world.Dup(), **self.patient)
        self.gather(comm, 1001, self.spec.sizes[0])
        self.said["again"] = True
        return comm


def _raised(act: Callable[[], None]) -> None:
    try:
        act()
    except mpimcast.Error:
        return
    raise RuntimeError("an operation on a poisoned communicator went on")


def main() -> None:
    """Run one rank."""
    os.chdir(sys.argv[1])
    rank = Rank(Spec(**json.loads(Path("spec.json").read_text())))
    rank.run()
    MPI.Finalize()
    Path(f"{rank.rank}.end").touch()


if __name__ == "__main__":
    main()
