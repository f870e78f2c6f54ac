# SPDX-License-Identifier: BSD-3-Clause
"""The doctor's report: a table for people, and the same as JSON for programs."""

from __future__ import annotations

import json
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from mpimcast.cli import terminal
from mpimcast.cli.doctor.finding import SEVERITIES, Finding, degraded_to, verdict
from mpimcast.cli.info.firewall import sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Report:
    """All findings, and the measurements of the checks.

    Parameters
    ----------
    started
        The time of the start, by the monotonic clock.
    checks
        The checks that were asked for.
    watched
        Whether a person watches the output.

    Attributes
    ----------
    nranks : int
        The number of ranks.
    nodes : list of dict
        Each node's name, ranks and known facts.
    measured : dict
        The measurements, by the check's name.
    untested : dict
        The reason why a check was not made, by the check's name.
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
        """Mark checks as untested, with the reason, if they were asked for."""
        for name in self.checks:
            if name in checks:
                self.untested.setdefault(name, reason)

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings of a check."""
        self.findings += findings

    @property
    def verdict(self) -> str:
        """The verdict of the worst finding: "usable", "degraded" or "unusable"."""
        return verdict(self.findings)

    @property
    def exclude(self) -> list[str]:
        """The nodes that the others do better without; empty if that is all nodes."""
        bad = {each.node for each in self.findings if each.leave_out and each.node}
        names = [node["name"] for node in self.nodes]
        named = [name for name in names if name in bad]
        return named if len(named) < len(names) else []

    def document(self) -> dict[str, Any]:
        """Return the whole report, fit for JSON."""
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
        """Print JSON if `path` is "-", else the table; write JSON to any other path."""
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
        """Return the words that limit the verdict if the network was not tested."""
        alone = self.nranks == 1 and self.untested and self.verdict != "unusable"
        return ", as far as one rank can tell" if alone else ""


def _s(count: int) -> str:
    return "" if count == 1 else "s"
