# SPDX-License-Identifier: BSD-3-Clause
"""Checks whether each rank hears every other's multicast, short and at full length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._session.multicast import PROBES_S
from mpimcast.cli.doctor import mtu
from mpimcast.cli.doctor.blame import LOSS_SILENT, Fault, by_node, find_faults
from mpimcast.cli.doctor.finding import Finding
from mpimcast.cli.doctor.survey import Burst, Result, SurveyPlan, survey
from mpimcast.cli.doctor.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpimcast._native.endpoint import Heard
    from mpimcast.cli.doctor.report import Report
    from mpimcast.cli.doctor.world import World

    Pair = tuple[int, int]

# The payload of a short datagram, which passes every path.
SHORT_BYTES = 64

# How many datagrams of each length a rank multicasts: at most the first, at least the
# second; between these, the third divided by the number of ranks.
_SENT_MAX, _SENT_MIN, _SENT_TOGETHER = 64, 8, 512

# How often the remaining nodes are tried if they show faults hidden before.
_TRIES = 3

_DUPLICATES_MAX = 0.05

# With no more nodes than this, the network as a whole is never blamed.
_PAIR = 2


class Sweep(NamedTuple):
    """Counts of the short and full datagrams that were heard, by pairs of ranks."""

    sent: int
    short: dict[Pair, Heard]
    full: dict[Pair, Heard]
    failures: dict[int, str]

    def better(self, other: Sweep) -> Sweep:
        """Return, for each pair, the result of the sweep in which more was heard."""
        return self._replace(
            short={pair: max(h, other.short[pair]) for pair, h in self.short.items()},
            full={pair: max(h, other.full[pair]) for pair, h in self.full.items()},
            failures={**self.failures, **other.failures},
        )


class Diagnosis(NamedTuple):
    """The nodes to blame for losses, and those too narrow for full datagrams."""

    losing: list[Fault]
    narrow: list[Fault]

    def nodes(self) -> set[str]:
        """Return the names of all nodes to blame."""
        return {fault.node for fault in (*self.losing, *self.narrow)}

    def widespread(self, nnodes: int) -> bool:
        """Return whether the network is to blame rather than some of its nodes."""
        return nnodes > _PAIR and 2 * len(self.losing) > nnodes


def check(report: Report, world: World, trial: Trial, instead: str) -> Trial:
    """Multicast from all to all; name the nodes to blame, and try without them.

    Parameters
    ----------
    report
        The report to add to.
    world
        All ranks, each of which must call.
    trial
        An open team, which is closed if another one is returned.
    instead
        The words for what takes over where multicast does not arrive; empty if
        nothing does.

    Returns
    -------
    Trial
        The team of the ranks on nodes that are not to blame.
    """
    heard = _sweep(world, trial)
    found = _diagnose(heard, world.nodes)
    if found.nodes():  # sweep again: a machine may have been busy
        heard = heard.better(_sweep(world, trial))
        found = _diagnose(heard, world.nodes)
    report.measured["multicast"] = _measured(heard, world.size)
    if found.widespread(len(world.names(trial.members))):
        report.add([_nowhere(instead)])
        return trial
    report.add(_findings(found, world, trial, instead))
    report.add(_duplicates(heard, world.nodes))
    report.add(_not_sent(heard, world, instead))
    if "mtu" in report.checks or found.narrow:
        largest = mtu.largest(world, trial, narrow=bool(found.narrow))
        report.add(mtu.findings(found.narrow, largest, world, trial))
        report.measured["mtu"] = largest
    return _try_without(found.nodes(), report, world, trial)


def _try_without(bad: set[str], report: Report, world: World, trial: Trial) -> Trial:
    """Try without the nodes to blame, then also without those that show faults."""
    for _ in range(_TRIES):
        rest = tuple(r for r in trial.members if world.nodes[r] not in bad)
        if not bad or len(world.names(rest)) <= 1:
            break
        trial.close()
        trial = Trial(world, trial.config, trial.kind, [rest])
        more: set[str] = set()
        if not trial.failures:
            more = _diagnose(_sweep(world, trial), world.nodes).nodes()
        report.measured["multicast"]["verified"] = not more and not trial.failures
        if not more:
            break
        bad |= more
    return trial


def _sweep(world: World, trial: Trial) -> Sweep:
    """Let all members multicast short and full datagrams; return what was heard."""
    _settle(world, trial)
    together = max(_SENT_MIN, _SENT_TOGETHER // world.size)
    sent = min(_SENT_MAX, together)
    full_bytes = trial.chunk_bytes

    def hear(nbytes: int) -> Result:
        bursts = [Burst(None, range(sent), nbytes)]
        plan = SurveyPlan(
            sent, bursts, lambda _, heard: heard.ndistinct == sent, in_turn=True
        )
        return survey(world, trial, plan)

    short, full = hear(min(SHORT_BYTES, full_bytes)), hear(full_bytes)
    return Sweep(sent, short.heard, full.heard, short.failures | full.failures)


def _settle(world: World, trial: Trial) -> None:
    """Give switches that have just learnt of a group as much time as opening does."""
    for slice_s in PROBES_S:
        unheard = 0
        if trial.endpoint is not None:
            unheard = trial.endpoint.probe(slice_s).unheard_full
        if not any(world.exchange(unheard)):
            break


def _diagnose(heard: Sweep, nodes: Sequence[str]) -> Diagnosis:
    short = _loss(heard.short, heard.sent, nodes)
    full = _loss(heard.full, heard.sent, nodes)
    narrow = {
        pair: full[pair] if full[pair] >= LOSS_SILENT > short[pair] else 0.0
        for pair in short
    }
    losing = {
        pair: short[pair] if narrow[pair] else max(short[pair], full[pair])
        for pair in short
    }
    return Diagnosis(find_faults(losing), find_faults(narrow))


def _loss(
    heard: Mapping[Pair, Heard], sent: int, nodes: Sequence[str]
) -> dict[tuple[str, str], float]:
    lost = {pair: 1 - each.ndistinct / sent for pair, each in heard.items()}
    return by_node(lost, nodes)


def _findings(
    found: Diagnosis, world: World, trial: Trial, instead: str
) -> list[Finding]:
    return [
        Finding(
            fault.node,
            "multicast",
            "degraded" if instead or not fault.silent else "unusable",
            fault.words("multicast"),
            _mend(fault, trial.devices[world.ranks_of(fault.node)[0]]),
            instead if fault.silent else "repairs of what multicast loses",
            leave_out=True,
        )
        for fault in found.losing
    ]


def _nowhere(instead: str) -> Finding:
    return Finding(
        "",
        "multicast",
        "degraded" if instead else "unusable",
        "most nodes do not receive each other's multicast",
        "check the network as a whole: IGMP snooping needs a querier, or must be off; "
        "firewalls must pass UDP to 239.192.0.0/14; NET_DEVICES chooses other "
        "interfaces",
        instead,
    )


def _mend(fault: Fault, device: str) -> str:
    """Return commands that may mend a fault, and where to run them."""
    if not fault.silent:
        return (
            f"on {fault.node}: ethtool -S {device}, and check its cable and port; "
            "sysctl -w net.core.rmem_max=4194304"
        )
    if len(fault.incoming) >= len(fault.outgoing):
        return (
            f"on {fault.node}: nft list ruleset; ip maddr show dev {device}; on its "
            "switch port: IGMP snooping needs a querier, or must be off"
        )
    return (
        f"on {fault.node}: nft list ruleset; ip link set dev {device} multicast on; "
        "on its switch port: storm control"
    )


def _duplicates(heard: Sweep, nodes: Sequence[str]) -> list[Finding]:
    """Return findings for nodes that receive datagrams more than once."""
    twice = by_node(
        {
            pair: max(each.nduplicates, heard.full[pair].nduplicates) / heard.sent
            for pair, each in heard.short.items()
        },
        nodes,
    )
    targets = {two for (_, two), part in twice.items() if part > _DUPLICATES_MAX}
    what = "it receives the multicast from others more than once"
    mend = "check whether two paths lead to it: a loop, a bond, a bridge"
    return [
        Finding(node, "multicast", "note", what, f"on {node}: {mend}")
        for node in dict.fromkeys(nodes)
        if node in targets
    ]


def _not_sent(heard: Sweep, world: World, instead: str) -> list[Finding]:
    """Return findings for nodes with ranks that could not send."""
    return [
        Finding(
            world.nodes[rank],
            "multicast",
            "degraded" if instead else "unusable",
            f"rank {rank}: {text}",
            f"on {world.nodes[rank]}: python -m mpimcast info",
            instead,
            leave_out=True,
        )
        for rank, text in heard.failures.items()
    ]


def _measured(heard: Sweep, size: int) -> dict[str, Any]:
    """Return matrices with a row for each receiver and a column for each sender."""
    measured: dict[str, Any] = {"sent": heard.sent}
    for name, pairs in (("short", heard.short), ("full", heard.full)):
        for what in ("ndistinct", "nduplicates"):
            rows: list[list[int | None]] = [[None] * size for _ in range(size)]
            for (source, target), each in pairs.items():
                rows[target][source] = getattr(each, what)
            key = "heard" if what == "ndistinct" else "duplicates"
            measured[f"{name}_{key}"] = rows
    return measured
