# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a job: Allgathers with checked bytes, and what is to go wrong.

Started as ``python gather.py FOLDER``. FOLDER/spec.json says what to do, see Spec;
FOLDER/RANK.json tells what came of it, and FOLDER/RANK.end that the process came to
its end.
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
    """What happens to a rank before one of its operations, or in it.

    Attributes
    ----------
    what : str
        A method's name.
    rank, op : int
        Whose, and before which operation; or after the last.
    for_s : float
        How long, or after what time.
    """

    what: str
    rank: int
    op: int
    for_s: float = 0

    def kill(self) -> None:
        """Be killed, at once or in the operation."""
        if self.for_s == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._later(os.kill, os.getpid(), signal.SIGKILL)

    def die(self) -> None:
        """End in the operation, without a word."""
        # Of another status mpirun takes notice, and may end the other ranks too.
        self._later(os._exit, 0)

    def _later(self, act: Callable[..., object], *arguments: object) -> None:
        timer = threading.Timer(self.for_s, act, arguments)
        timer.daemon = True
        timer.start()

    def stop(self) -> None:
        """Stand still for some time, from some point of the operation on."""
        _shell(f"sleep 0.02; kill -STOP $0; sleep {self.for_s}; kill -CONT $0")

    def stop_kill(self) -> None:
        """Stand still for some time, then be killed."""
        _shell(f"sleep 0.02; kill -STOP $0; sleep {self.for_s}; kill -KILL $0")

    def stop_down(self) -> None:
        """Stand still, and lose the network after some time."""
        _shell(f"sleep 0.02; kill -STOP $0; sleep {self.for_s}; ip link set eth0 down")

    def pulse(self) -> None:
        """Stand still 20 ms of every 100 from now on."""
        _shell("while kill -STOP $0; do sleep .02; kill -CONT $0; sleep .08; done")

    def late(self) -> None:
        """Come late."""
        time.sleep(self.for_s)

    def down(self) -> None:
        """Lose the network at some point of the operation."""
        _shell(f"sleep {self.for_s}; ip link set eth0 down")

    def narrow(self) -> None:
        """Have an interface that takes no whole datagram any more."""
        _shell(f"sleep {self.for_s}; ip link set eth0 mtu 900")

    def shut(self) -> None:
        """Lose the interface of the own RDMA device, in a guest, likewise."""
        _shell(f"sleep {self.for_s}; ip link set net{self.rank} down")

    def unplug(self) -> None:
        """Lose the cable of the own RDMA device, in a guest, for some time."""
        port = f"ip link set port{self.rank}"
        _shell(f"sleep 0.02; {port} down; sleep {self.for_s}; {port} up")

    def meet(self) -> None:
        """Wait until the test has done something."""
        Path(f"reached{self.op}").touch()
        while not Path(f"go{self.op}").exists():
            time.sleep(POLL_S)


_shells: list[subprocess.Popen[bytes]] = []


def _shell(script: str) -> None:
    _shells.append(subprocess.Popen(["/bin/sh", "-c", script, str(os.getpid())]))


@dataclasses.dataclass
class Spec:
    """What a job does.

    Attributes
    ----------
    settings : dict
        Of the communicators.
    sizes : list of int
        Bytes of a block, one operation after the other.
    repeat : int
        How often all sizes.
    ncomms : int
        How many communicators do so, each in its own thread.
    spare : bool
        Whether, after a failure, those without a mishap use another communicator.
    warm : bool
        Whether the ranks open their transport beforehand, with time enough for that.
    again : bool
        Whether, after a failure and the mishaps' end, all use another communicator.
    verify : bool
        Whether to compare all bytes.
    free : bool
        Whether to free the communicators; else their end is that of MPI.
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
    """What one rank does and sees."""

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
        # Of communicators after a failure, to which ranks come at different times.
        self.patient = {**spec.settings, "timeout": 60}

    def gather(self, comm: mpimcast.Intracomm, op: int, nbytes: int) -> None:
        """Do one operation and check it."""
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
        """Have the mishaps that precede an operation."""
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
                # With the last of them goes what they share.
                while comms:
                    comms.pop().Free()
                comms.append(self.another())
        self.said["stats"] = comms[0].stats()
        self.said["explained"] = str(comms[0].explain(self.spec.sizes[0]))
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.said["cpu_seconds"] = usage.ru_utime + usage.ru_stime
        written = Path(f"{self.rank}.new")
        written.write_text(json.dumps(self.said))
        # Whoever sees it sees it whole.
        written.rename(f"{self.rank}.json")
        if self.spec.free:
            for comm in [*comms, spare]:
                comm.Free()

    def warm(self) -> mpimcast.Intracomm:
        """Return a communicator that has what others of these ranks share with it."""
        comm = mpimcast.Intracomm(self.world.Dup(), **self.patient)
        comm.Allgather(np.zeros(1), np.zeros(comm.size))
        return comm

    def use(self, comms: list[mpimcast.Intracomm]) -> None:
        """Work on all communicators, first on another one on each rank."""
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
        """See that the communicator is unusable, at once, and others are not."""
        begin_s = time.monotonic()
        _raised(lambda: self.gather(comm, -1, self.spec.sizes[0]))
        self.said["poisoned_seconds"] = time.monotonic() - begin_s
        if self.spec.spare:
            self.gather(spare, 1000, self.spec.sizes[0])
            self.said["spare"] = True

    def another(self) -> mpimcast.Intracomm:
        """Use another communicator of all ranks, once nothing is wrong any more."""
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
