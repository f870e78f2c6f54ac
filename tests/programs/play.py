# SPDX-License-Identifier: BSD-3-Clause
"""Play random programs on mpimcast, under faults, and on the MPI library.

It is started on several ranks as ``python play.py COUNT SEED``, and on several hosts as
``python play.py COUNT SEED verbs``. Rank 0 draws programs,
shrinks a program that goes wrong, and prints a line of JSON about all programs.

Some communicators have a proxy, on all ranks or on some. The ranks start it, and end
it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from mpi4py import MPI
from player import GROUPS, Player
from program import Program, programs

from mpimcast._native.proxy import find

LIMIT_S = 40  # for one program

FAULTS = (
    "loss=0.1,dup=0.02,reorder=0.05",
    "loss=0.05,dup=0.02,reorder=0.05,kind=all",
    "delay_us=300,reorder=0.1,kind=all;loss=0.3,rank=1",
)


def choices(number: int, transport: str, *, hosts: bool) -> list[dict[str, Any]]:
    """Return the settings of a run's communicators.

    Parameters
    ----------
    number
        The seed.
    transport
        The transport of the multicasts, ``"udp"`` or ``"verbs"``.
    hosts
        Whether there are several hosts.
    """
    base = {"transport": transport, "min_bytes": 0, "chunk_bytes": 512}
    lossy, worse, late = (f"{fault},seed={number}" for fault in FAULTS)
    return [
        {**base, "fault": lossy},
        {**base, "fault": worse, "eager_bytes": 0},
        {**base, "fault": worse, "subgroups": 3, "workers": "on"},
        {**base, "fault": late, "repair": "neighbour", "chains": 1},
        {**base, "fault": lossy, "min_bytes": 400, "chunk_bytes": 0},
        {"transport": f"shm,{transport}" if hosts else "shm", "min_bytes": 0},
        {"transport": f"shm,{transport}", "min_bytes": 400, "node_bytes": "400K"},
    ]


def proxied(number: int, transport: str, name: str, rank: int) -> list[dict[str, Any]]:
    """Return the settings of further communicators, whose ranks have a proxy or not.

    Parameters
    ----------
    number, transport
        As for `choices`.
    name
        The proxy's name.
    rank
        This rank, whose own settings are returned.
    """
    lossy, worse, late, *_ = choices(number, transport, hosts=False)
    who = (True, rank % 2 == 1, rank % 2 == 0)
    return [
        {**chosen, "progress": "proxy" if has_one else "auto", "proxy": name}
        for chosen, has_one in zip((lossy, worse, late), who, strict=True)
    ]


def end(name: str) -> None:
    """End the proxy, if there is one."""
    runner = find(name)
    if runner is not None:
        os.kill(runner.pid, signal.SIGTERM)


class Rank:
    """A rank that plays programs, one after the other."""

    def __init__(self, player: Player) -> None:
        self.world = MPI.COMM_WORLD
        self.nplayed = 0
        self._player = player

    def play(self, program: Program | None) -> list[str] | None:
        """Play rank 0's program; return what was wrong on any rank.

        Return None if rank 0 has no more programs.
        """
        program = self.world.bcast(program)
        if program is None:
            return None
        self.nplayed += 1
        watch = threading.Timer(LIMIT_S, self._give_up, [program])
        watch.daemon = True
        watch.start()
        with aborting(f"rank {self.world.rank}: this program failed: {program}"):
            ours, truth = self._player.play(program), self._player.expect(program)
        watch.cancel()
        wrong = [
            f"rank {self.world.rank}, operation {number}"
            for number, (one, other) in enumerate(zip(ours, truth, strict=True))
            if one != other
        ]
        return list(itertools.chain.from_iterable(self.world.allgather(wrong)))

    def _give_up(self, program: Program) -> None:
        faulthandler.dump_traceback()
        who = f"rank {self.world.rank}"
        print(f"{who}: still running after {LIMIT_S} s: {program}", file=sys.stderr)
        sys.stderr.flush()
        # Other ranks get a moment to say where they are.
        time.sleep(2)
        os._exit(1)


@contextlib.contextmanager
def aborting(what: str = "") -> Iterator[None]:
    """Abort all ranks if the block raises an exception; print `what` first."""
    try:
        yield
    except BaseException:
        traceback.print_exc()
        print(what, file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)
        raise


def main() -> None:
    """Run one rank."""
    count, number = map(int, sys.argv[1:3])
    (transport,) = sys.argv[3:] or ["udp"]
    hosts = len(sys.argv) > 3
    world = MPI.COMM_WORLD
    name = world.bcast(f"programs-{os.getpid()}-{time.time_ns():x}")
    chosen = [
        *choices(number, transport, hosts=hosts),
        *proxied(number, transport, name, world.rank),
    ]
    with Player(chosen) as player:
        rank = Rank(player)

        @seed(number)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )
        @given(programs(len(chosen), tuple(GROUPS)))
        def lead(program: Program) -> None:
            wrong = rank.play(program)
            assert not wrong, f"other results than the MPI library's: {wrong}"

        begin_s = time.monotonic()
        if rank.world.rank == 0:
            with aborting():
                lead()
            rank.world.bcast(None)
        else:
            while rank.play(None) is not None:
                pass
        told = {
            "programs": rank.nplayed,
            "moved": player.nmoved,
            "proxied": player.nproxied,
            "seconds": time.monotonic() - begin_s,
            **player.totals,
        }
    if rank.world.rank == 0:
        end(name)
        print(json.dumps(told))


if __name__ == "__main__":
    main()
