# SPDX-License-Identifier: BSD-3-Clause
"""Run one rank of a job of many operations; compare with the MPI library's bytes.

Started as ``python rounds_rank.py FOLDER``. FOLDER/spec.json has a list of games. A
game opens communicators of the first `nranks` ranks, which are on `nhosts` hosts,
`nthreads` of them, with its own settings, and plays rounds on each. The ranks that it
lists as `proxied` have a proxy. A round is a group
of operations, whose counters are read before and after (see Round). The rank writes its
results to FOLDER/RANK.json, game by game and round by round, and makes FOLDER/RANK.end
as its last act.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import switch
from exchange import Bytes, Exchange
from mpi4py import MPI

import mpimcast

# The value that fills memory in which nothing may be written.
POISON = 0xA5

# How long after its operation's end a chunk may still be on its way to a rank, or in
# the rank's queues.
SETTLE_S = 2.0

# This many of the oldest results, and as many of the latest, are kept, to see whether
# they are written again.
KEPT = 16

Counts = dict[str, int]


@dataclasses.dataclass
class Round:
    """A group of operations whose counters are added up.

    Attributes
    ----------
    sizes : list of int
        The bytes of a block in each operation, in order.
    repeat : int
        How often to run through all sizes.
    kinds, forms : list of str
        Kinds and forms of exchange.py. All sizes are run in each form of each kind.
    place : str
        Where results are received: the name of a method of Places, or "strided" for
        memory with holes.
    in_place : bool
        Whether every other operation uses MPI_IN_PLACE.
    bare : bool
        Whether Allgathers follow each other directly, without a check of their results.
    by_tests : bool
        Whether operations are Iallgathers, completed by calling Test again and again
        beside a persistent request.
    late : dict
        By rank, the seconds by which it enters each operation late.
    spoil, mend : str
        Shell scripts that rank 0 runs before and after the round. They make the switch
        lose packets, and undo that. With `spoil`, the round counts the fates of chunks
        on the switch.
    """

    sizes: list[int]
    repeat: int = 1
    kinds: list[str] = dataclasses.field(default_factory=lambda: ["Allgather"])
    forms: list[str] = dataclasses.field(default_factory=lambda: ["blocking"])
    place: str = "fresh"
    in_place: bool = False
    bare: bool = False
    by_tests: bool = False
    late: dict[str, float] = dataclasses.field(default_factory=dict)
    spoil: str = ""
    mend: str = ""


class Places:
    """Memory for a round's results on a communicator.

    Each method named by Round.place returns what to pass as recvbuf, and the same
    memory as bytes, all POISON.

    Attributes
    ----------
    wrong : list of str
        Descriptions of errors in old results.
    """

    def __init__(self, comm: mpimcast.Intracomm) -> None:
        self.wrong: list[str] = []
        self._comm = comm
        self._own: dict[int, Bytes] = {}
        self._used: list[Bytes] = []

    def fresh(self, nbytes: int) -> tuple[Any, Bytes]:
        """Return new memory."""
        place = np.full(nbytes, POISON, np.uint8)
        return place, place

    def owned(self, nbytes: int) -> tuple[Any, Bytes]:
        """Return memory of mpimcast.empty, the same memory for each size."""
        if nbytes not in self._own:
            self._own[nbytes] = mpimcast.empty(nbytes, np.uint8)
        place = self._own[nbytes]
        place[:] = POISON
        return place, place

    def shared(self, nbytes: int) -> tuple[Any, Bytes]:
        """Return memory that the ranks of a node share, the same for each size."""
        if nbytes not in self._own:
            self._own[nbytes] = mpimcast.empty(nbytes, np.uint8, comm=self._comm)
        place = self._own[nbytes]
        self._comm.node_barrier()  # All have checked the result before.
        place[:] = POISON
        self._comm.node_barrier()
        return place, place

    def poisoned(self, nbytes: int) -> tuple[Any, Bytes]:
        """Return new memory; poison old results and, if there are many, drop one.

        The dropped result is the oldest one after the first KEPT. It must still be
        poisoned.
        """
        for old in self._used[-KEPT:]:
            old[:] = POISON
        if len(self._used) > 2 * KEPT:
            self._check(self._used.pop(KEPT))
        self._used.append(np.zeros(nbytes, np.uint8))
        return self._used[-1], self._used[-1]

    def finish(self) -> None:
        """Check that every old result is still poisoned."""
        for old in self._used[:-1]:
            self._check(old)

    def _check(self, old: Bytes) -> None:
        if not (old == POISON).all():
            self.wrong.append(f"{(old != POISON).sum()} bytes written after return")


class Player:
    """One rank on one communicator.

    Parameters
    ----------
    plain
        The MPI library's communicator of the same ranks, for the bytes to compare with.
    settings
        The settings of mpimcast's communicator.
    nhosts
        The number of hosts, each of which receives every chunk of the others.
    """

    def __init__(
        self, plain: MPI.Intracomm, settings: dict[str, Any], nhosts: int
    ) -> None:
        self.plain = plain
        self.nhosts = nhosts
        self.comm = mpimcast.Intracomm(plain.Dup(), **settings)
        self.random = np.random.default_rng(plain.rank)
        self.wrong: list[str] = []
        self.by_tests = False

    def exchange(
        self, each: Exchange, form: str, places: Places, how: str, *, in_place: bool
    ) -> None:
        """Do one operation and compare its bytes with those of the MPI library."""
        rank = self.comm.rank
        nbytes = each.blocks_bytes[rank]
        mine = self.random.integers(0, 256, nbytes, np.uint8)
        expected = np.full(each.place_bytes, POISON, np.uint8)
        each.block(expected, rank)[:] = mine
        each.run(self.plain, "blocking", None, expected)
        if how == "strided":
            self._gather_strided(mine, expected)
            return
        spec, place = getattr(places, how)(each.place_bytes)
        if in_place:
            each.block(place, rank)[:] = mine
        sent = MPI.IN_PLACE if in_place else mine
        if self.by_tests:
            self._gather_by_tests(sent, spec)
        else:
            each.run(self.comm, form, None if in_place else mine, spec)
        self._compare(place, expected, nbytes)

    def _gather_by_tests(self, sent: Any, spec: Any) -> None:
        """Do one Iallgather, and test it, while a persistent request is active."""
        other = np.zeros(self.comm.size * 3000, np.uint8)
        persistent = self.comm.Allgather_init(np.ones(3000, np.uint8), other)
        request = self.comm.Iallgather(sent, spec)
        persistent.Start()
        while not request.Test():
            pass
        persistent.Wait()
        persistent.Free()
        if not other.all():
            self.wrong.append("a persistent request has not delivered every byte")

    def _gather_strided(self, mine: Bytes, expected: Bytes) -> None:
        """Receive into pieces with holes between them, whose size differs by rank.

        Rank 0's holes have 1 byte. Each further rank's holes have 7 more bytes than
        those of the rank before it.
        """
        rank = self.comm.rank
        nbytes, piece, stride = len(mine), 100, 101 + 7 * rank
        npieces = nbytes // piece
        kind = MPI.BYTE.Create_vector(npieces, piece, stride)
        kind = kind.Create_resized(0, npieces * stride).Commit()
        room = np.full(self.comm.size * npieces * stride, POISON, np.uint8)
        self.comm.Allgather(mine, [room, 1, kind])
        kind.Free()
        pieces = room.reshape(-1, stride)
        self._compare(pieces[:, :piece].ravel(), expected, nbytes)
        if not (pieces[:, piece:] == POISON).all():
            self.wrong.append("bytes written between the pieces")

    def _compare(self, place: Bytes, expected: Bytes, nbytes: int) -> None:
        """Note which bytes differ from those expected, in blocks of `nbytes`."""
        if not np.array_equal(place, expected):
            at = np.flatnonzero(place != expected)
            self.wrong.append(f"{len(at)} bytes in blocks of {nbytes}, from {at[0]} on")

    def play(self, what: Round) -> dict[str, Any]:
        """Play a round; return what was wrong, and by how much counters have grown.

        If the switch loses packets, also count the fates of chunks.
        """
        with contextlib.ExitStack() as until_end:
            if what.spoil and self.comm.rank == 0:
                until_end.enter_context(switch.counting(self.nhosts))
            return self._play(what)

    def _play(self, what: Round) -> dict[str, Any]:
        self.wrong = []
        self._shell(what.spoil)
        switch_before = self._look(what)
        before = self.comm.stats()
        places = Places(self.comm)
        self.by_tests = what.by_tests
        begin_s = time.monotonic()
        if what.bare:
            self._gather_bare(what)
        else:
            self._gather_all(what, places)
        seconds = time.monotonic() - begin_s
        places.finish()
        deadline_s = time.monotonic() + SETTLE_S
        while True:
            self.plain.Barrier()
            stats = since(self.comm.stats(), before)
            fate = since(self._look(what), switch_before)
            is_late = time.monotonic() > deadline_s
            is_settled = self._is_settled(stats, fate) if what.spoil else True
            if self.plain.bcast(is_settled or is_late):
                break
            time.sleep(0.01)
        self._shell(what.mend)
        return {
            "wrong": self.wrong + places.wrong,
            "seconds": seconds,
            "stats": stats,
            "fate": fate,
        }

    def _look(self, what: Round) -> Counts:
        """Return, on rank 0, the switch's counts if the round makes it lose packets."""
        return switch.look() if what.spoil and self.comm.rank == 0 else {}

    def _is_settled(self, stats: Counts, fate: Counts) -> bool:
        """Return, on rank 0, whether the fate of every copy of a chunk is known.

        The fate of a copy that a device has dropped never becomes known.
        """
        sent = self.plain.allreduce(stats["tx_multicast_datagrams"])
        heard = self.plain.allreduce(stats["rx_multicast_datagrams"])
        ncopies = sent * (self.nhosts - 1)
        return sum(fate.values()) >= ncopies and fate.get("arrived") == heard

    def _gather_all(self, what: Round, places: Places) -> None:
        """Do the round's operations, and check each result."""
        sizes = what.sizes * what.repeat
        each = itertools.product(what.kinds, what.forms, sizes)
        for op, (kind, form, nbytes) in enumerate(each):
            time.sleep(what.late.get(str(self.comm.rank), 0))
            in_place = kind == "Bcast" or (what.in_place and op % 2 == 1)
            exchange = Exchange(kind, nbytes, op, self.comm.size)
            self.exchange(exchange, form, places, what.place, in_place=in_place)

    def _gather_bare(self, what: Round) -> None:
        """Do the round's Allgathers without looking at their results."""
        mine = np.zeros(max(what.sizes), np.uint8)
        place = np.empty(self.comm.size * max(what.sizes), np.uint8)
        for nbytes in what.sizes * what.repeat:
            self.comm.Allgather(mine[:nbytes], place[: self.comm.size * nbytes])

    def _shell(self, script: str) -> None:
        """Run a script on rank 0 while all other ranks wait."""
        self.plain.Barrier()
        if script and self.comm.rank == 0:
            subprocess.run(["/bin/sh", "-ec", script], check=True)
        self.plain.Barrier()


def since(now: Counts, before: Counts) -> Counts:
    """Return by how much each counter has grown."""
    return {name: now[name] - before[name] for name in now}


def play_game(plain: MPI.Intracomm, game: dict[str, Any]) -> list[dict[str, Any]]:
    """Play all rounds of a game; return the results of each round."""
    nthreads = game["nthreads"]
    settings = game["settings"]
    if plain.rank in game.get("proxied", ()):
        settings = {**settings, "progress": "proxy"}
    arguments = settings, game.get("nhosts", game["nranks"])
    players = [Player(plain.Dup(), *arguments) for _ in range(nthreads)]
    for player in players:
        # This opens the transport, so that the datagrams of opening are not counted.
        player.play(Round([1]))
    rounds = [Round(**each) for each in game["rounds"]]
    if nthreads == 1:
        results = [players[0].play(each) for each in rounds]
    else:
        results = play_together(players, rounds)
    results[0]["explained"] = str(players[0].comm.explain(1 << 20))
    for player in players:
        player.comm.Free()
    return results


def play_together(players: list[Player], rounds: list[Round]) -> list[dict[str, Any]]:
    """Play the rounds on all communicators at once, with a thread for each.

    Each rank starts its threads in a different order. Return the results of each round
    of each communicator.
    """
    results: list[dict[str, Any]] = []

    def play(player: Player) -> None:
        results.extend(player.play(each) for each in rounds)

    first = players[0].comm.rank % len(players)
    threads = [
        threading.Thread(target=play, args=(player,))
        for player in players[first:] + players[:first]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def await_others(world: MPI.Intracomm) -> None:
    """Wait until all ranks are here, without using the processor."""
    all_here = world.Ibarrier()
    while not all_here.Test():
        time.sleep(0.02)


def main() -> None:
    """Run one rank."""
    os.chdir(sys.argv[1])
    world = MPI.COMM_WORLD
    results = []
    for game in json.loads(Path("spec.json").read_text())["games"]:
        plays = world.rank < game["nranks"]
        plain = world.Split(0 if plays else MPI.UNDEFINED)
        results.append(play_game(plain, game) if plays else [])
        await_others(world)
    wrong = [each["wrong"] for rounds in results for each in rounds if each["wrong"]]
    outcome = {"games": results, "wrong": wrong, "errors": []}
    Path(f"{world.rank}.json").write_text(json.dumps(outcome))
    rank = world.rank
    MPI.Finalize()
    Path(f"{rank}.end").touch()


if __name__ == "__main__":
    main()
