# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor tells: a table for people, the same as JSON for programs."""

from __future__ import annotations

import json
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from mpimcast import terminal
from mpimcast.doctor.finding import SEVERITIES, Finding, degraded_to, verdict
from mpimcast.firewall import sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Report:
    """All findings, and what the checks have measured.

    Parameters
    ----------
    started
        When, of the monotonic clock.
    checks
        Those that were asked for.
    watched
        Whether a person watches the output.

    Attributes
    ----------
    nranks : int
        As many as could be reached.
    nodes : list of dict
        Each node's name, ranks, and what is known of it.
    measured : dict
        What each check has measured, by its name.
    untested : dict
        Why a check was not made, by its name.
    """

    def __init__(self, started: float, checks: Sequence[str], *, watched: bool) -> None:
        self._started = started
        self._watched = watched
        self.checks = tuple(checks)
        self.nranks = 0
        self.nodes: list[dict[str, Any]] = []
        self.measured: dict[str, Any] = {}
        self.untested: dict[str, str] = {}
        self.findings: list[Finding] = []

    def skip(self, checks: Iterable[str], reason: str) -> None:
        """Take out checks that were asked for and cannot be made."""
        for name in self.checks:
            if name in checks:
                self.untested.setdefault(name, reason)

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings of a check."""
        self.findings += findings

    @property
    def verdict(self) -> str:
        """What the worst finding means: "usable", "degraded" or "unusable"."""
        return verdict(self.findings)

    @property
    def exclude(self) -> list[str]:
        """The nodes that the others do better without, unless that is all."""
        bad = {each.node for each in self.findings if each.leave_out and each.node}
        names = [node["name"] for node in self.nodes]
        named = [name for name in names if name in bad]
        return named if len(named) < len(names) else []

    def document(self) -> dict[str, Any]:
        """Return all of it, in terms of JSON."""
        return {
            "verdict": self.verdict,
            "degraded_to": degraded_to(self.findings),
            "nranks": self.nranks,
            "nodes": self.nodes,
            "findings": [each.plain() for each in self._sorted()],
            "exclude": self.exclude,
            "seconds": round(time.monotonic() - self._started, 3),
            "untested": self.untested,
            **self.measured,
        }

    def show(self, path: str | None) -> None:
        """Print the table, or the JSON if `path` is "-"; write it there otherwise."""
        text = json.dumps(self.document(), indent=1) + "\n"
        if path == "-":
            print(text, end="")
            return
        self._print()
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")

    def _sorted(self) -> list[Finding]:
        """Return the findings, the worst first."""
        return sorted(self.findings, key=lambda each: -SEVERITIES.index(each.severity))

    def _print(self) -> None:
        console = terminal.console(watched=self._watched)
        nnodes = len(self.nodes)
        table = Table(
            title=f"mpimcast doctor: {self.nranks} rank{_s(self.nranks)} on {nnodes} "
            f"node{_s(nnodes)}",
        )
        table.add_column("node", overflow="fold")
        table.add_column("check")
        table.add_column("finding", overflow="fold")
        for each in self._sorted():
            words = f"{each.severity}: {each.what}"
            if each.mend:
                words += f"\n-> {each.mend}"
            table.add_row(escape(each.node or "all"), each.check, escape(words))
        told = {*self.untested, *(each.check for each in self.findings)}
        fine = [name for name in self.checks if name not in told]
        if fine:
            table.add_row("all", ", ".join(fine), "nothing is wrong")
        for reason in dict.fromkeys(self.untested.values()):
            names = [name for name, why in self.untested.items() if why == reason]
            table.add_row("all", ", ".join(names), escape(f"not tested: {reason}"))
        console.print(table)
        passed = self.measured.get("firewall")
        if passed:
            print(textwrap.fill(f"udp: {sentence(passed)}", 80))
        to = degraded_to(self.findings)
        print(f"{self.verdict}{f' ({to})' if to else ''}{self._reservation()}")
        if self.exclude:
            print(f"sbatch -x {','.join(self.exclude)} ...")

    def _reservation(self) -> str:
        """Say what the verdict does not rest on, if that is the network."""
        alone = self.nranks == 1 and self.untested and self.verdict != "unusable"
        return ", as far as one rank can tell" if alone else ""


def _s(count: int) -> str:
    return "" if count == 1 else "s"
