# SPDX-License-Identifier: BSD-3-Clause
"""Compares nodes by their interfaces, devices, limits and processors."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpimcast._native.transport import Udp
from mpimcast._session.introduction import draft_of, introduce
from mpimcast._support.naming import usual_and_deviants
from mpimcast.cli.doctor.finding import Finding
from mpimcast.cli.info import codes, rdma
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mpimcast._native.devices import Interface
    from mpimcast._settings.config import Config
    from mpimcast.cli.doctor.report import Report
    from mpimcast.cli.doctor.world import World

    Facts = dict[str, Any]

# The receive buffer that the driver asks for, and gets if the user may have it.
_BUFFER_BYTES = 4 << 20

# The properties of RDMA devices' ports that should be equal on all nodes.
_PORT = ("state", "link_layer", "mtu_bytes")


def check(report: Report, world: World, config: Config) -> None:
    """Gather the facts of all nodes, and report where they differ."""
    facts = world.exchange(_facts(config))
    interfaces = world.exchange(_interface(world, config, facts))
    for fact, interface in zip(facts, interfaces, strict=True):
        fact["interface"] = interface
    for node in report.nodes:
        first, *_ = node["ranks"]
        told = facts[first]
        node.update(
            {k: v for k, v in told.items() if k not in ("cpus", "introduction")}
        )
        node["cpus"] = {str(rank): facts[rank]["cpus"] for rank in node["ranks"]}
    if "nodes" in report.checks:
        report.add(compare(report.nodes, ttl=config.ttl))


def _facts(config: Config) -> Facts:
    """Return the facts that this rank sees of its node."""
    try:
        introduction = introduce(config)
    except Error:
        introduction = None
    locked_bytes, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = locked_bytes == resource.RLIM_INFINITY
    return {
        "introduction": introduction,
        "rdma": rdma.gather(config),
        "memlock_bytes": None if unlimited else locked_bytes,
        "rmem_max_bytes": _number("/proc/sys/net/core/rmem_max"),
        "wmem_max_bytes": _number("/proc/sys/net/core/wmem_max"),
        "root": os.geteuid() == 0,
        "cores": os.cpu_count(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "erasure_codes": codes.gather() if config.reliability != "repeat" else None,
    }


def _number(path: str) -> int | None:
    """Return the number in a file of the kernel, or None if there is none."""
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _interface(world: World, config: Config, facts: Sequence[Facts]) -> Facts:
    """Find the interface that UDP would use, which may differ between ranks."""
    introductions = [fact["introduction"] for fact in facts]
    if not all(introductions):
        return {"reason": "a rank cannot load mpimcast's C library"}
    udp = Udp(config, draft_of(introductions, world.rank))
    for found in udp.candidate_interfaces():
        if not isinstance(found, Error):
            return _described(found)
    return {"reason": "no interface leads to rank 0"}


def _described(found: Interface) -> Facts:
    return {
        "name": found.name,
        "address": str(found.address.ip),
        "subnet": str(found.address.network),
        "mtu_bytes": found.mtu_bytes,
        "igmp": _igmp_version(found.name),
    }


def _igmp_version(interface: str) -> str:
    """Return the IGMP version that an interface speaks, as V3; "" if unknown."""
    try:
        lines = Path("/proc/net/igmp").read_text(encoding="ascii").splitlines()
    except OSError:
        return ""
    for line in lines:
        words = line.replace(":", " ").split()
        if interface in words and words[-1].startswith("V"):
            return words[-1]
    return ""


# ---- differences ---------------------------------------------------------------


def compare(nodes: Sequence[Facts], *, ttl: int) -> Iterator[Finding]:
    """Yield findings where nodes differ, and where a node is short of something."""
    wired = [node for node in nodes if "name" in node["interface"]]
    for node in nodes:
        if node not in wired:
            reason = node["interface"]["reason"]
            mend = f"on {node['name']}: ip address show; choose one with NET_DEVICES"
            yield _note(node["name"], reason, mend)
    if wired:
        yield from _mtus(wired)
        yield from _subnets(wired, ttl)
        yield from _igmp(wired)
    yield from _ports(nodes)
    yield from _buffers(nodes)
    yield from _codecs(nodes)
    for node in nodes:
        yield from _limits(node)
        yield from _cpus(node)


def _note(node: str, what: str, mend: str) -> Finding:
    return Finding(node, "nodes", "note", what, mend)


def _mtus(nodes: Sequence[Facts]) -> Iterator[Finding]:
    mtus = [node["interface"]["mtu_bytes"] for node in nodes]
    usual, odd = usual_and_deviants(mtus)
    for place in odd:
        node, mtu = nodes[place], mtus[place]
        device = node["interface"]["name"]
        smaller = mtu < usual
        yield Finding(
            node["name"],
            "nodes",
            "degraded" if smaller else "note",
            f"the MTU of {device} is {mtu} bytes, on most nodes {usual}",
            f"on {node['name']}: ip link set dev {device} mtu {usual}",
            f"datagrams of {mtu} bytes in place of {usual}",
            leave_out=smaller,
        )


def _subnets(nodes: Sequence[Facts], ttl: int) -> Iterator[Finding]:
    subnets = [node["interface"]["subnet"] for node in nodes]
    usual, odd = usual_and_deviants(subnets)
    nrouters = max(ttl - 1, 0)
    routers = f"{nrouters} router{'' if nrouters == 1 else 's'}"
    for place in odd:
        yield _note(
            nodes[place]["name"],
            f"its interface is in {subnets[place]}, on most nodes in {usual}; with "
            f"TTL={ttl} multicast passes {routers}",
            "export MPIMCAST_TTL=8 on every rank, or choose interfaces of one network "
            "with NET_DEVICES",
        )


def _igmp(nodes: Sequence[Facts]) -> Iterator[Finding]:
    versions = [node["interface"]["igmp"] for node in nodes]
    usual, odd = usual_and_deviants(versions)
    for place in odd:
        name, device = nodes[place]["name"], nodes[place]["interface"]["name"]
        yield _note(
            name,
            f"{device} speaks IGMP {versions[place] or '?'}, on most nodes "
            f"{usual or '?'}",
            f"on {name}: sysctl -w net.ipv4.conf.{device}.force_igmp_version="
            f"{(usual or 'V3')[1:]}",
        )


def _ports(nodes: Sequence[Facts]) -> Iterator[Finding]:
    """Compare the ports of RDMA devices, which should be equal on all nodes."""
    ports = [
        tuple(
            tuple(port.get(name) for name in _PORT)
            for port in node["rdma"].get("ports", ())
        )
        for node in nodes
    ]
    usual, odd = usual_and_deviants(ports)
    for place in odd:
        name = nodes[place]["name"]
        yield _note(
            name,
            f"its RDMA ports are {_shown(ports[place])}, on most nodes {_shown(usual)}",
            f"on {name}: ibv_devinfo; rdma link show",
        )


def _shown(ports: Sequence[Sequence[object]]) -> str:
    return "; ".join(" ".join(map(str, port)) for port in ports) or "none"


def _buffers(nodes: Sequence[Facts]) -> Iterator[Finding]:
    """Compare the limits of socket buffers' sizes."""
    for limit in ("rmem_max", "wmem_max"):
        values = [node[f"{limit}_bytes"] for node in nodes]
        usual, odd = usual_and_deviants(values)
        for place in odd:
            name = nodes[place]["name"]
            yield _note(
                name,
                f"net.core.{limit} is {values[place]}, on most nodes {usual}",
                f"on {name}: sysctl -w net.core.{limit}={usual}",
            )
    small = [
        node["name"]
        for node in nodes
        if not node["root"]
        and (node["rmem_max_bytes"] or _BUFFER_BYTES) < _BUFFER_BYTES
    ]
    if small:
        yield _note(
            small[0] if len(small) == 1 else "",
            f"receive buffers are smaller than they could be on {len(small)} "
            f"node{'' if len(small) == 1 else 's'}",
            f"sysctl -w net.core.rmem_max={_BUFFER_BYTES}",
        )


def _codecs(nodes: Sequence[Facts]) -> Iterator[Finding]:
    """Report which nodes lack ISA-L, if codes are used."""
    reasons = {
        node["name"]: node["erasure_codes"]["reason"]
        for node in nodes
        if node["erasure_codes"] and node["erasure_codes"]["codec"] != "ISA-L"
    }
    everywhere = len(reasons) == len(nodes)
    for name, reason in list(reasons.items())[: 1 if everywhere else None]:
        yield _note(
            "" if everywhere else name,
            f"parity is computed without ISA-L, more slowly: {reason}",
            f"on {'every node' if everywhere else name}: {codes.INSTALL}",
        )


def _limits(node: Facts) -> Iterator[Finding]:
    """Report if queue pairs may not lock the memory that they ask for."""
    limit, name = node["memlock_bytes"], node["name"]
    if limit is None or node["root"] or not node["rdma"].get("ports"):
        return
    yield _note(
        name,
        f"only {limit} bytes of memory may be locked, so queues are shorter",
        f"on {name}: ulimit -l unlimited (or memlock in /etc/security/limits.conf)",
    )


def _cpus(node: Facts) -> Iterator[Finding]:
    """Report if ranks share processors, which is worse if others are free."""
    cpus = {rank: tuple(cpus) for rank, cpus in node["cpus"].items()}
    shared = [
        (one, other)
        for one in cpus
        for other in cpus
        if int(one) < int(other) and cpus[one] == cpus[other] and len(cpus[one]) == 1
    ]
    union = {cpu for each in cpus.values() for cpu in each}
    name, nranks = node["name"], len(cpus)
    mend = (
        "srun --cpu-bind=cores -c CORES, or mpirun --bind-to core; fewer ranks a node"
    )
    if shared and len(union) < min(nranks, node["cores"] or nranks):
        one, other = shared[0]
        what = f"ranks {one} and {other} are both bound to core {cpus[one][0]}"
        yield Finding(name, "nodes", "degraded", what, mend, "ranks that share a core")
    elif len(union) < nranks:
        what = f"{nranks} ranks share {len(union)} cores"
        yield _note(name, what, mend)
