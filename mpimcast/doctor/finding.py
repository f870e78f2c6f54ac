# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor finds, and what follows from all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

# The least severe first. What is only noted needs no mending.
SEVERITIES = ("note", "degraded", "unusable")

# What a verdict is called and the exit status that tells it, by severity.
VERDICTS = {"note": "usable", "degraded": "degraded", "unusable": "unusable"}
STATUSES = {"usable": 0, "degraded": 3, "unusable": 4}


class Finding(NamedTuple):
    """One thing that is not as it should be.

    Attributes
    ----------
    node : str
        The node that has it; empty if it is nobody's in particular.
    check : str
        The check that found it.
    severity : str
        One of SEVERITIES.
    what : str
        What is wrong, for people.
    mend : str
        The command that mends it, or what to look at; empty if nothing has to be.
    degraded_to : str
        What collectives come down to, if that is why it is "degraded".
    leave_out : bool
        Whether the others do better without the node.
    """

    node: str
    check: str
    severity: str
    what: str
    mend: str
    degraded_to: str = ""
    leave_out: bool = False

    def plain(self) -> dict[str, str]:
        """Return what reports tell of it."""
        told = ("node", "check", "severity", "what", "mend")
        return {name: getattr(self, name) for name in told}


def verdict(findings: Iterable[Finding]) -> str:
    """Return what the worst of all means."""
    worst = max((SEVERITIES.index(each.severity) for each in findings), default=0)
    return VERDICTS[SEVERITIES[worst]]


def degraded_to(findings: Iterable[Finding]) -> str:
    """Say what collectives come down to, if they work at all."""
    words = [each.degraded_to for each in findings if each.severity == "degraded"]
    return "; ".join(dict.fromkeys(word for word in words if word))
