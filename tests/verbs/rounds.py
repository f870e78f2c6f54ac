# SPDX-License-Identifier: BSD-3-Clause
"""Run games in one job of rounds_rank.py; in a round the switch may lose chunks.

A round is a group of operations. A game is a communicator and the rounds on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import support
from hosts import on_hosts
from ranks import SETTINGS, job
from switch import CHUNK_MATCH, DROPPED

from bench.guest.guest import Failed, Guest

PROGRAM = support.ROOT / "tests/verbs/rounds_rank.py"

# A script that removes every rule by which the switch loses or counts packets.
HEAL = """
for path in /sys/class/net/{port,net}*; do
    tc qdisc del dev ${path##*/} root
    tc qdisc del dev ${path##*/} clsact
done
true
"""

Game = dict[str, Any]


class Outcome:
    """The results of a round, from all ranks.

    Attributes
    ----------
    dropped, overflowed, arrived : int
        Numbers of copies of chunks, by their fate on the switch; see switch.look. They
        are 0 unless the round makes the switch lose packets.
    waiting : int
        How many copies of chunks may have waited in the ranks' queues when the round
        began.
    ranks : list of dict
        The counters of each rank.
    nhosts : int
        The number of hosts, each of which receives every chunk of the others.
    """

    def __init__(
        self, ranks: Sequence[dict[str, Any]], nhosts: int, waiting: int
    ) -> None:
        fate = ranks[0]["fate"]
        self.dropped: int = fate.get("dropped", 0)
        self.overflowed: int = fate.get("overflowed", 0)
        self.arrived: int = fate.get("arrived", 0)
        self.waiting = waiting
        self.ranks: list[dict[str, int]] = [each["stats"] for each in ranks]
        self.nhosts = nhosts

    def total(self, counter: str) -> int:
        """Return the sum of a counter over the ranks."""
        return sum(stats[counter] for stats in self.ranks)

    @property
    def ncopies(self) -> int:
        """The number of copies of the chunks sent, one for each receiver."""
        return self.total("tx_multicast_datagrams") * (self.nhosts - 1)

    @property
    def unheard(self) -> int:
        """How many copies may still wait in the ranks' queues after the round."""
        lost = self.dropped + self.overflowed
        heard = self.total("rx_multicast_datagrams")
        return max(0, self.waiting + self.ncopies - lost - heard)

    @property
    def fetched(self) -> int:
        """The number of chunks that arrived by a read or as a repair."""
        return self.total("read_chunks") + self.total("rx_repair_datagrams")

    def check(self) -> None:
        """Check that each copy of a chunk is accounted for, if none was delayed.

        A late rank may fetch more chunks than the switch drops: its device drops chunks
        for which it has no receive, and the rank may read chunks that still wait in a
        queue until the next round. So copies are counted separately at the switch, at
        the devices and at the ranks, and the check holds even for late ranks.
        """
        assert self.dropped + self.overflowed + self.arrived == self.ncopies, self
        heard = self.total("rx_multicast_datagrams")
        assert heard <= self.waiting + self.arrived, self
        # A rank lacks the chunks that it did not receive or had no room to keep.
        lacked = self.ncopies - heard + self.total("rx_unparked_datagrams")
        assert self.fetched - self.total("rx_duplicate_chunks") == lacked, self

    def __repr__(self) -> str:
        """Show all counters that are not 0."""
        totals = {name: self.total(name) for name in self.ranks[0]}
        seen = {name: value for name, value in totals.items() if value}
        fate = f"{self.dropped} dropped, {self.overflowed} overflowed"
        return f"{self.waiting} waited; {fate}, {self.arrived} arrived; {seen}"


def game(
    nranks: int,
    rounds: Sequence[dict[str, Any]],
    *,
    nthreads: int = 1,
    proxied: Iterable[int] = (),
    **settings: Any,
) -> Game:
    """Return a game for `play`: rounds on one communicator, or on `nthreads` at once.

    The ranks in `proxied` have a proxy. The settings are added to SETTINGS.
    """
    return {
        "nranks": nranks,
        "rounds": list(rounds),
        "nthreads": nthreads,
        "proxied": list(proxied),
        "settings": {**SETTINGS, **settings},
    }


def play(
    guest: Guest,
    games: Sequence[Game],
    *,
    places: Sequence[int] = (),
    limit_s: float = 100,
) -> list[list[Outcome]]:
    """Play games in one job, and check every byte.

    Parameters
    ----------
    guest, games
        The guest to run in, and the games.
    places
        The number of each rank's host, for games of all ranks. If it is empty, each
        rank multicasts for itself, as if alone on a host.
    limit_s
        How long the job may take, in seconds.

    Returns
    -------
    list of list of Outcome
        By game, the outcomes of its rounds.
    """
    nranks = max(each["nranks"] for each in games)
    nhosts = len(set(places))
    folder, command = job(
        guest,
        nranks,
        program=PROGRAM,
        wrap=on_hosts(places) if places else "",
        games=[{"nhosts": nhosts or each["nranks"], **each} for each in games],
    )
    try:
        guest.run(command, limit_s=limit_s, cwd=support.ROOT)
    except Failed:
        # Otherwise the switch would still lose packets in the next tests.
        guest.run(["bash", "-c", HEAL], limit_s=20)
        raise
    files = [folder / f"{rank}.json" for rank in range(nranks)]
    results = [json.loads(file.read_text())["games"] for file in files]
    device = f"rxe{places[0] if places else 0}:1"
    outcomes = []
    for number, each in enumerate(games):
        ranks = [results[rank][number] for rank in range(each["nranks"])]
        _check(each, ranks, device)
        outcomes.append(_outcomes(ranks, nhosts or len(ranks)))
    return outcomes


def _outcomes(ranks: Sequence[Sequence[Any]], nhosts: int) -> list[Outcome]:
    """Return the outcomes of a game's rounds, from the results of each rank."""
    outcomes: list[Outcome] = []
    waiting = 0
    for of_round in zip(*ranks, strict=True):
        outcomes.append(Outcome(of_round, nhosts, waiting))
        waiting = outcomes[-1].unheard
    return outcomes


def _check(played: Game, ranks: Sequence[Any], device: str) -> None:
    """Check what all ranks found in a game, and that rank 0's data took `device`."""
    explained = ranks[0][0]["explained"]
    assert explained.startswith(f"verbs: RoCE multicast, {device}"), explained
    for rank, rounds in enumerate(ranks):
        for result in rounds:
            assert not result["wrong"], f"{played}, rank {rank}: {result['wrong']}"


def losing(ports: Iterable[int], netem: str, others: str = "") -> dict[str, str]:
    """Return scripts for a round that make the switch lose or delay packets, and stop.

    Parameters
    ----------
    ports
        The switch's ports. Each has the number of the device behind it.
    netem
        The arguments of tc's netem for chunks.
    others
        The arguments of tc's netem for all other packets; "" to leave them alone.
    """
    spoil = mend = ""
    for port in ports:
        at = f"dev port{port} parent"
        spoil += f"""
            tc qdisc add dev port{port} root handle 1: prio bands 2 \\
                priomap{" 0" * 16}
            tc qdisc add {at} 1:2 handle 3: netem {netem}
            tc filter add {at} 1: protocol ip u32 {CHUNK_MATCH} flowid 1:2
            """
        if others:
            spoil += f"tc qdisc add {at} 1:1 handle 2: netem {others}\n"
        mend += f"tc qdisc del dev port{port} root\n"
    return {"spoil": spoil, "mend": mend}


def missing(port: int, chunks: Iterable[int]) -> dict[str, str]:
    """Return scripts for a round that make the switch drop given chunks at one port.

    Parameters
    ----------
    port
        The number of the device behind the port.
    chunks
        The chunks' indices. A filter recognises a chunk by its index, which is also the
        packet's immediate.
    """
    spoil = f"tc qdisc add dev port{port} clsact\n" + "".join(
        f"tc filter add dev port{port} egress pref 1 protocol ip u32 "
        f"match ip dst 224.0.0.0/4 match u32 {chunk} 0xffffffff at 48 "
        f"action drop index {DROPPED}\n"
        for chunk in chunks
    )
    return {"spoil": spoil, "mend": f"tc qdisc del dev port{port} clsact\n"}
