# SPDX-License-Identifier: BSD-3-Clause
"""The ground of simulated runs: a fabric with the ranks on it, its routes and trees."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mpimcast._fabric import placement
from mpimcast._fabric.arrays import arrays
from mpimcast._fabric.bound import bound_ns
from mpimcast._fabric.catalogue import built
from mpimcast._fabric.link import Link
from mpimcast._fabric.mixing import mix
from mpimcast._fabric.nodes import nodes
from mpimcast._fabric.rendezvous import Rendezvous
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.subnet_manager import SubnetManager
from mpimcast._peers.background import background
from mpimcast.cli.sim.options import COLLECTIVES, OUTAGES, RANKS_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpimcast._fabric.fabric import Fabric
    from mpimcast._fabric.tree import Tree
    from mpimcast._peers.background import Background
    from mpimcast.cli.sim.choices import Choices
    from mpimcast.cli.sim.simulator import Plain

_PPB_PER_PPM = 1000

# How many trees reduce: switches have few, as each needs memory for sums.
_NREDUCING = 2


class Ground:
    """A fabric with the ranks on it, its routes and trees, for one seed.

    Parameters
    ----------
    fabric
        The fabric, without placement.
    choices
        What the command line says about it.
    spec
        The simulator's spec.

    Attributes
    ----------
    fabric
        The fabric, in the order of ranks.
    reducing
        The trees by which switches reduce.
    arrays
        All that as the simulator takes it.
    groups
        The group of each rank, for algorithms of two levels: its node, or its rack if
        nodes have one rank.
    spec
        The simulator's spec, with the fields that the fabric decides.
    """

    def __init__(self, fabric: Fabric, choices: Choices, spec: Plain) -> None:
        self.fabric = _placed(fabric, choices.placement, spec["seed"])
        routes = Routes(self.fabric)
        trees, self.reducing = _trees(self.fabric, routes, choices, spec)
        self.arrays = arrays(routes, trees)
        for links, loss_ppm in choices.link_loss:
            if links.isdigit():
                self.arrays.link_loss_ppb[int(links)] = loss_ppm * _PPB_PER_PPM
        nranks = spec["nranks"]
        inside = self.fabric.tier(self.fabric.hosts[0].switch) == "node"
        of_hosts = self.fabric.switches if inside else self.fabric.racks
        self.groups: list[int] = of_hosts[:nranks].tolist()
        self.spec = {**spec, **_judged(self.fabric)}
        if inside:
            self.spec["host_ranks"] = self.groups.count(self.groups[0])

    def bound_ns(self, *, beside: bool) -> int:
        """Return the least time of the operations.

        Parameters
        ----------
        beside
            Whether a Reduce-Scatter of the same blocks has to end as well.
        """
        spec = self.spec
        sent = np.zeros(spec["nranks"], np.uint64)
        sent[:] = spec["block_bytes"]
        if spec["kind"] == COLLECTIVES["bcast"]:
            sent[np.arange(len(sent)) != spec["root"]] = 0
        more = spec["block_bytes"] if beside else 0
        nops: int = spec["nops"] * spec["nstreams"]
        return nops * bound_ns(self.fabric, sent, more)

    def background(self, share_ppm: int, seed: int) -> Background:
        """Return messages of other jobs, at a share of their hosts' rate.

        They start within four times the least time of the operations.
        """
        nranks, nhosts = self.spec["nranks"], self.fabric.nhosts
        first = nranks if nhosts - nranks > 1 else 0
        return background(
            np.arange(first, nhosts, dtype=np.uint32),
            share_ppm,
            self.fabric.hosts[first].up.mbits,
            4 * self.bound_ns(beside=False),
            seed,
        )

    def places(self) -> list[str]:
        """Return the switch that each rank is at."""
        switches = self.fabric.switches[: self.spec["nranks"]].tolist()
        return [f"{self.fabric.tier(switch)} {switch}" for switch in switches]

    def link_names(self) -> list[str]:
        """Return what to call each link: its class and its ends."""
        table, nhosts = self.fabric.links, self.fabric.nhosts

        def vertex(number: int) -> str:
            if number < nhosts:
                return f"host {number}"
            return f"{self.fabric.tier(number - nhosts)} {number - nhosts}"

        return [
            f"{vertex(int(start))} to {vertex(int(end))}"
            for start, end in zip(table.start, table.end, strict=True)
        ]


def begun(
    choices: Choices, default: Plain, options: Mapping[str, Any]
) -> tuple[Fabric, Plain]:
    """Return the fabric without placement, and the simulator's spec for it.

    Parameters
    ----------
    choices
        What the command line says about the fabric.
    default
        The simulator's spec without any options.
    options
        The fields of it that the command line gives.

    Raises
    ------
    ValueError
        If there is no such fabric, it cannot have so many ranks, or it does not hold
        together without the cables that have failed.
    """
    link = Link("")
    on_fabric = {
        "link_mbits": link.mbits,
        "latency_ns": link.latency_ns,
        "queue_bytes": link.queue_bytes,
        "adaptive": 1,
        "root": 0,
    }
    spec = {**default, **on_fabric, **options}
    spec["trunk_mbits"] = options.get("trunk_mbits", spec["link_mbits"])
    per_node = choices.ranks_per_node
    link = replace(
        link,
        mbits=spec["link_mbits"],
        latency_ns=spec["latency_ns"],
        queue_bytes=spec["queue_bytes"],
    )
    fabric = built(choices.fabric, link, -(-spec["nranks"] // per_node))
    if per_node > 1:
        fabric = _with_nodes(fabric, per_node)
    if choices.failed:
        fabric = fabric.without(choices.failed)
    spec["nranks"] = options.get("nranks", min(fabric.nhosts, RANKS_MAX))
    if spec["nranks"] > fabric.nhosts:
        raise ValueError(
            f"--ranks {spec['nranks']}: the fabric has places for {fabric.nhosts}"
        )
    _check_outage(fabric, spec)
    return _linked(fabric, choices, spec), spec


def _with_nodes(fabric: Fabric, per_node: int) -> Fabric:
    """Return the fabric with `per_node` ranks on each node; refuse one of rails."""
    if fabric.tier(fabric.hosts[0].switch) == "node":
        raise ValueError(
            "--ranks-per-node: the nodes of this fabric have as many ranks as rails"
        )
    return nodes(fabric, per_node)


def _check_outage(fabric: Fabric, spec: Plain) -> None:
    """Raise ValueError if an outage is to be where nothing is."""
    place, first = spec["outage_place"], 2 * fabric.nhosts
    nlinks = len(fabric.links.links)
    if spec["outage"] == OUTAGES["link"] and not first <= place < nlinks:
        raise ValueError(
            f"--outage-place {place}: the links between switches are "
            + (f"{first} to {nlinks - 1}" if first < nlinks else "none")
        )
    if spec["outage"] == OUTAGES["leaf"] and place >= fabric.nswitches:
        raise ValueError(
            f"--outage-place {place}: the switches are 0 to {fabric.nswitches - 1}"
        )


def _linked(fabric: Fabric, choices: Choices, spec: Plain) -> Fabric:
    """Return the fabric with the rates, jitter and losses of its classes of links."""
    table = fabric.links
    known = {*table.classes, *map(str, range(len(table.links)))}
    for links, _ in choices.link_loss:
        if links not in known:
            classes = ", ".join(name.replace(" ", "-") for name in table.classes)
            raise ValueError(
                f"--link-loss {links.replace(' ', '-')}: the classes of links are "
                f"{classes}, and the links 0 to {len(table.links) - 1}"
            )
    losses = dict(choices.link_loss)

    def change(_start: int, _end: int, link: Link) -> Link:
        tier, _, way = link.name.partition(" ")
        if tier == "host" and way == "down":
            link = replace(
                link,
                jitter_ns=spec["jitter_ns"],
                loss_ppb=spec["loss_ppm"] * _PPB_PER_PPM,
            )
        elif tier != "node":
            link = replace(link, loss_ppb=spec["uplink_loss_ppm"] * _PPB_PER_PPM)
        if tier != "node":
            link = replace(link, loss_period=spec["loss_period"])
        if tier not in {"host", "node", "long"}:
            link = replace(link, mbits=spec["trunk_mbits"])
        if link.name in losses:
            link = replace(link, loss_ppb=losses[link.name] * _PPB_PER_PPM)
        return link

    return fabric.changed(change)


def _placed(fabric: Fabric, name: str, seed: int) -> Fabric:
    if name == "shuffled":
        return placement.shuffled(fabric, seed)
    return (
        placement.packed(fabric) if name == "packed" else placement.interleaved(fabric)
    )


def _trees(
    fabric: Fabric, routes: Routes, choices: Choices, spec: Plain
) -> tuple[Sequence[Tree], Sequence[Tree]]:
    """Return the trees of the subgroups, and those by which switches reduce.

    The latter are the subnet manager's in any case, and others than the former.
    """
    ranks, nsubgroups = range(spec["nranks"]), spec["subgroups"]
    manager = SubnetManager(fabric, routes)
    trees = manager.trees(ranks, nsubgroups)
    if choices.trees == "pim":
        rendezvous = Rendezvous(fabric, routes)
        first = mix(spec["seed"])
        trees = [rendezvous.tree(ranks, first + group) for group in range(nsubgroups)]
    return trees, manager.trees(ranks, _NREDUCING) if choices.beside else []


def _judged(fabric: Fabric) -> Plain:
    """Return the fields by which the simulator judges repairs: those of the worst link.

    On a fabric it does not use them otherwise.
    """
    links = fabric.links.links

    def of(field: str) -> list[int]:
        return [getattr(link, field) for link in links]

    return {
        "latency_ns": max(of("latency_ns")),
        "jitter_ns": max(of("jitter_ns")),
        "queue_bytes": min(of("queue_bytes")),
    }
