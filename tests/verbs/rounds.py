# SPDX-License-Identifier: BSD-3-Clause
"""Many rounds of operations in one job, see rounds_rank.py, and what spoils them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import support
from ranks import SETTINGS

from bench.guest.guest import Guest

PROGRAM = support.ROOT / "tests/verbs/rounds_rank.py"

Game = dict[str, Any]


class Outcome:
    """What the ranks saw of a round.

    Attributes
    ----------
    dropped : int
        Packets that the switch has lost on purpose.
    ranks : list of dict
        By rank: its counters.
    """

    def __init__(self, ranks: Sequence[dict[str, Any]]) -> None:
        self.dropped: int = ranks[0]["dropped"]
        self.ranks: list[dict[str, int]] = [each["stats"] for each in ranks]

    def total(self, counter: str) -> int:
        """Return the sum of a counter over the ranks."""
        return sum(stats[counter] for stats in self.ranks)

    def __repr__(self) -> str:
        """Show all counters that are not 0."""
        totals = {name: self.total(name) for name in self.ranks[0]}
        seen = {name: value for name, value in totals.items() if value}
        return f"dropped {self.dropped}, {seen}"


def game(
    nranks: int, rounds: Sequence[dict[str, Any]], *, nthreads: int = 1, **settings: Any
) -> Game:
    """Return rounds on one communicator, or on several at once, for play()."""
    return {
        "nranks": nranks,
        "rounds": list(rounds),
        "nthreads": nthreads,
        "settings": {**SETTINGS, **settings},
    }


def play(
    guest: Guest, games: Sequence[Game], *, limit_s: float = 100
) -> list[list[Outcome]]:
    """Play games in one job; return the outcomes, with every byte right."""
    nranks = max(each["nranks"] for each in games)
    folder = Path(tempfile.mkdtemp(dir=guest.work))
    (folder / "spec.json").write_text(json.dumps({"games": games}))
    guest.run(
        [*support.mpirun(nranks), PROGRAM, folder], limit_s=limit_s, cwd=support.ROOT
    )
    files = [folder / f"{rank}.json" for rank in range(nranks)]
    told = [json.loads(file.read_text())["games"] for file in files]
    outcomes = []
    for number, each in enumerate(games):
        ranks = [told[rank][number] for rank in range(each["nranks"])]
        assert ranks[0][0]["explained"].startswith("verbs: RoCE multicast, rxe0:1")
        for rank, results in enumerate(ranks):
            for result in results:
                assert not result["wrong"], f"{each}, rank {rank}: {result['wrong']}"
        outcomes.append([Outcome(results) for results in zip(*ranks, strict=True)])
    return outcomes


def losing(ports: Iterable[int], netem: str, others: str = "") -> dict[str, str]:
    """Return what lets the switch mistreat what goes to devices, for a round.

    Parameters
    ----------
    ports
        The devices' numbers.
    netem
        What tc's netem is told about chunks. Control is multicast, too, in packets
        of less than 256 bytes; chunks are longer.
    others
        Likewise about everything else, if anything.
    """
    spoil = mend = ""
    for port in ports:
        at = f"dev port{port} parent"
        spoil += f"""
            tc qdisc add dev port{port} root handle 1: prio bands 2 \\
                priomap{" 0" * 16}
            tc qdisc add {at} 1:2 handle 3: netem {netem}
            tc filter add {at} 1: pref 1 protocol ip u32 \\
                match ip dst 224.0.0.0/4 match u16 0 0xff00 at 2 flowid 1:1
            tc filter add {at} 1: pref 2 protocol ip u32 \\
                match ip dst 224.0.0.0/4 flowid 1:2
            """
        if others:
            spoil += f"tc qdisc add {at} 1:1 handle 2: netem {others}\n"
        mend += f"tc qdisc del dev port{port} root\n"
    return {"spoil": spoil, "mend": mend}


def missing(port: int, chunks: Iterable[int]) -> dict[str, str]:
    """Return what lets the switch lose some chunks that go to a device, always.

    A chunk is known by its index, which is the packet's immediate, too.
    """
    spoil = f"tc qdisc add dev port{port} clsact\n" + "".join(
        f"tc filter add dev port{port} egress pref 1 protocol ip u32 "
        f"match ip dst 224.0.0.0/4 match u32 {chunk} 0xffffffff at 48 action drop\n"
        for chunk in chunks
    )
    return {"spoil": spoil, "mend": f"tc qdisc del dev port{port} clsact\n"}
