# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast doctor security``: watch a network for those who attack jobs.

Run it on a node of a job, while the job runs, as root or with the capability
CAP_NET_RAW. It only listens. It finds jobs whose datagrams are not protected, floods,
hosts that send what no rank sends or that bear a rank's address, hosts and users that
listen, and jobs of other hosts.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from mpimcast._settings.config import Config
from mpimcast.cli import arguments, commands, terminal
from mpimcast.cli.doctor import local
from mpimcast.cli.doctor.capture import capture
from mpimcast.cli.doctor.finding import STATUSES, Finding
from mpimcast.cli.doctor.report import Report
from mpimcast.cli.doctor.sightings import Sightings
from mpimcast.cli.node import node_name
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator
    from ipaddress import IPv4Interface

    from mpimcast.cli.doctor.local import Socket
    from mpimcast.cli.doctor.sightings import Job, Stranger

NAME = "security"
_SECONDS, _SECONDS_MAX = 5.0, 3600.0

# From this rate on, what no rank sends is a flood.
_FLOOD_PER_S = 1000

# Of so many strangers each is told of, those who send most first.
_STRANGERS_TOLD = 8

_SHUT = "find the switch's port of that address (bridge fdb show), and shut it"
_PROTECT = "set PROTECT=authenticate, or PROTECT=encrypt"
_PRIVILEGE = "run this as root, or with CAP_NET_RAW: without it, no frame is seen"
_OPEN_TO = "open to strangers"
_SHOWN = 4  # words of a list


def main(argv: list[str]) -> int:
    """Watch, report, and return the exit status."""
    options = _parser().parse_args(argv)
    report = Report(
        started=time.monotonic(), checks=(NAME,), watched=terminal.is_watched()
    )
    report.nodes = [{"name": node_name(), "ranks": [0]}]
    report.nranks = 1
    sys.stdout.flush()
    try:
        device, own = _interface(options.device)
        Watch(report, device, own).watch(options.seconds)
        report.show(options.json)
    except (OSError, TransportError) as error:
        print(f"mpimcast doctor: {error}", file=sys.stderr)
        return STATUSES["unusable"]
    return STATUSES[report.verdict]


class Watch:
    """A time for which a network is watched.

    Parameters
    ----------
    report
        Where findings go.
    device
        The interface.
    own
        The address of this host there, with the netmask.
    """

    def __init__(self, report: Report, device: str, own: IPv4Interface) -> None:
        self._report = report
        self._device = device
        self._own = own
        self._groups = Config.read({}).group
        self._per_s = 0.0  # the rate of what was counted once

    def watch(self, seconds: float) -> None:
        """Watch for some seconds, and report."""
        sockets = local.sockets()
        ours = local.of_groups(sockets, self._groups)
        self._report.add(self._other_users(ours))
        seen = Sightings(self._groups, local.beside(sockets, ours))

        measured: dict[str, Any] = {"device": self._device, "seconds": seconds}
        self._report.measured[NAME] = measured
        try:
            captured = capture(self._device, seconds, seen.see)
        except PermissionError:
            self._add("note", f"{self._device} cannot be watched", _PRIVILEGE)
            return
        nframes, nmissed, mac = captured
        measured |= {"frames": nframes, "missed_frames": nmissed}
        self._per_s = nframes / max(nframes - nmissed, 1) / seconds
        seen.learn({**local.neighbour_macs(), self._own.ip: mac}, self._own.network)
        self._judge(seen, {each.place for each in ours})

    def _add(self, severity: str, what: str, mend: str) -> None:
        self._report.add([self._finding(severity, what, mend)])

    def _finding(self, severity: str, what: str, mend: str) -> Finding:
        to = _OPEN_TO if severity == "degraded" else ""
        return Finding(node_name(), NAME, severity, what, mend, to)

    def _other_users(self, ours: Iterable[Socket]) -> Iterator[Finding]:
        """Yield findings about users of this host who receive the same group."""
        users: dict[local.Place, set[str]] = {}
        for each in ours:
            users.setdefault(each.place, set()).add(each.user)
        for place, names in users.items():
            if len(names) > 1:
                yield self._finding(
                    "degraded",
                    f"{place} is received by processes of {_list(sorted(names))}",
                    f"ask them: ss -lupn; or {_PROTECT}",
                )

    def _judge(self, seen: Sightings, here: set[local.Place]) -> None:
        """Report what follows; processes of this host receive `here`."""
        jobs = [job for job in seen.jobs() if job.place.address.is_multicast]
        strangers = seen.strangers()
        self._report.measured[NAME] |= {
            "jobs": [
                {
                    "place": str(job.place),
                    "ranks": list(map(str, job.ranks)),
                    "protected": not job.is_open,
                }
                for job in jobs
            ],
            "strangers": [
                {
                    "mac": each.mac,
                    "addresses": list(map(str, each.ips)),
                    "forges": each.forges,
                    "per_second": round(each.ndatagrams * self._per_s, 1),
                }
                for each in strangers
            ],
        }
        for job in jobs:
            self._judge_job(job, here)
        for each in strangers[:_STRANGERS_TOLD]:
            self._judge_stranger(each)
        more = strangers[_STRANGERS_TOLD:]
        if more:
            rate = sum(each.ndatagrams for each in more) * self._per_s
            what = f"{len(more)} more send what no rank sends, {rate:,.0f} a second"
            self._add("degraded", what, _SHUT)
        self._judge_listeners(seen, jobs)
        if not jobs:
            mend = "run this on a node of a job, while it runs"
            self._add("note", f"no job was heard on {self._device}", mend)

    def _judge_job(self, job: Job, here: set[local.Place]) -> None:
        whose = f"the job of {_list(job.ranks)} at {job.place}"
        if job.is_open:
            what = f"{whose} is not protected: others can read and forge its datagrams"
            self._add("degraded", what, _PROTECT)
        if job.place not in here:
            what = f"{whose} is heard, though no process here receives it"
            mend = "switch on IGMP snooping; give each job a GROUP of its own"
            self._add("note", what, mend)

    def _judge_stranger(self, each: Stranger) -> None:
        rate = each.ndatagrams * self._per_s
        sends = "floods" if rate >= _FLOOD_PER_S else "sends to"
        what = (
            f"{each.mac} {sends} {_list(each.places)}, {rate:,.0f} datagrams a second"
        )
        if each.forges:
            what += f", as if it were {_list(each.ips)}"
        else:
            what += f" that no rank sends, as {_list(each.ips)}"
        self._add("degraded", what, _SHUT)

    def _judge_listeners(self, seen: Sightings, jobs: list[Job]) -> None:
        """Report hosts that get a job's multicast, but were not heard there."""
        for job in jobs:
            members = seen.members.get(job.place.address, set())
            silent = sorted(members - {*job.ranks, self._own.ip})
            if silent:
                what = f"{_list(silent)} receives {job.place}, but sends nothing there"
                mend = "restrict IGMP on its switch port, or set PROTECT=encrypt"
                self._add("degraded" if job.is_open else "note", what, mend)
        routers = {each.host for each in seen.routers if not each.asks} - {self._own.ip}
        if routers:
            are_open = any(job.is_open for job in jobs)
            what = (
                f"{_list(sorted(routers))} says that it is a multicast router, so that "
                "switches send it all multicast"
            )
            mend = "if it is none, drop PIM from hosts at the switch"
            self._add("degraded" if are_open else "note", what, mend)
        if not seen.members:
            what = "no host's IGMP reports were heard, so listeners may be missed"
            mend = "ask the switch which ports have the groups: bridge mdb show"
            self._add("note", what, mend)


def _list(each: Iterable[object]) -> str:
    """Return the first words of a list, and how many more there are."""
    words = list(dict.fromkeys(map(str, each)))
    shown = ", ".join(words[:_SHOWN])
    return f"{shown} and {len(words) - _SHOWN} more" if words[_SHOWN:] else shown


def _interface(name: str | None) -> tuple[str, IPv4Interface]:
    """Return an interface's name and address; None: the one that jobs would use."""
    from mpimcast._native.devices import find_interface

    given = {} if name is None else {"net_devices": name}
    found = find_interface(Config.read(given), same_host=False)
    return found.name, found.address


def _parser() -> argparse.ArgumentParser:
    parser = commands.parser("doctor", __doc__)
    parser.prog += f" {NAME}"
    parser.add_argument(
        "--seconds",
        type=arguments.seconds(0.1, _SECONDS_MAX, example="5"),
        default=_SECONDS,
        metavar="SECONDS",
        help="how long to watch (default: %(default)g)",
    )
    parser.add_argument(
        "--device", metavar="NAME", help="the interface (default: as jobs choose it)"
    )
    parser.add_argument(
        "--json",
        metavar="PATH",
        help="also write everything to this file, or with - to standard output instead "
        "of the table",
    )
    return parser
