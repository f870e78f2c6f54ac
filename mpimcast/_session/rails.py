# SPDX-License-Identifier: BSD-3-Clause
"""Chooses rails: the network devices that each node uses, and who leads it on each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._mpi.agreement import together
from mpimcast._session.introduction import draft_of
from mpimcast._session.nodes import is_near, led

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast._native.layout import Layout
    from mpimcast._native.transport import Transport
    from mpimcast._session.introduction import Introduction
    from mpimcast._session.sharing import Shared


class Told(NamedTuple):
    """What a rank tells of a device that it can use: a `Candidate`, for others.

    Attributes
    ----------
    device, choice, direct
        As in `Candidate`.
    near : bool
        Whether the rank runs only on processors near the device.
    """

    device: str
    choice: str
    direct: bool
    near: bool


def choose(
    introduction: Introduction, kind: type[Transport], shared: Shared
) -> tuple[Shared, list[str]]:
    """Choose the rails of a kind of transport. Collective unless RAILS is 1.

    Return `shared` with the leaders of each rail, and what NET_DEVICES has to be on
    this rank for each rail.
    """
    config, rank = introduction.config, introduction.private.Get_rank()
    if config.rails == 1:
        return shared, [config.net_devices]
    draft = draft_of(introduction.facts, rank)

    def tell() -> tuple[None, Any]:
        return None, [
            Told(each.device, each.choice, each.direct, is_near(each.folder))
            for each in kind(config, draft).candidates()
        ]

    _, facts = together(introduction.private, config, tell)
    told = [[Told(*each) for each in fact] for fact in facts]
    numbers = common(told)
    limit = why_fewer(config.rails, shared.layout, told)
    del numbers[min(config.rails, fewest_members(shared.layout)[0]) :]
    shared = shared._replace(limit=limit)
    if len(numbers) <= 1:
        return shared, [config.net_devices]
    nears = [[each[number].near for each in told] for number in numbers]
    return (
        shared._replace(layout=led(shared.layout, nears)),
        [told[rank][number].choice for number in numbers],
    )


def common(told: Sequence[Sequence[Told]]) -> list[int]:
    """Return the numbers of devices that can be rails, from the best on.

    Each rank has such a device, which is none of its devices of an earlier rail.
    """
    numbers: list[int] = []
    taken: list[set[str]] = [{""} for _ in told]
    for direct in (True, False):
        for number in range(min(map(len, told))):
            row = [each[number] for each in told]
            if all(
                each.direct >= direct and each.device not in devices
                for each, devices in zip(row, taken, strict=True)
            ):
                numbers.append(number)
                for each, devices in zip(row, taken, strict=True):
                    devices.add(each.device)
    return numbers


def fewest_members(layout: Layout) -> tuple[int, int]:
    """Return the ranks of the smallest node: how many, and the first of them."""
    return min((len(layout.members(first)), first) for first in layout.firsts())


def why_fewer(wanted: int, layout: Layout, told: Sequence[Sequence[Told]]) -> str:
    """Return in words why there are fewer rails than `wanted`; empty if there are not.

    Parameters
    ----------
    told
        What each rank has told of its devices, by rank.
    """
    nmembers, first = fewest_members(layout)
    ncommon = len(common(told))
    if min(nmembers, ncommon) >= wanted:
        return ""
    if nmembers <= ncommon:
        has = "is alone on its node" if nmembers == 1 else f"is on a node of {nmembers}"
        return (
            f"RAILS={wanted} needs as many ranks on each node, and rank {first} {has}"
        )
    names = [sorted({each.device for each in devices} - {""}) for devices in told]
    rank = min(range(len(names)), key=lambda rank: len(names[rank]))
    has = (
        f"only {ncommon} of them reach all nodes"
        if len(names[rank]) > ncommon
        else f"rank {rank} has only {' and '.join(names[rank])}"
    )
    return f"RAILS={wanted} needs as many network devices on each node, and {has}"
