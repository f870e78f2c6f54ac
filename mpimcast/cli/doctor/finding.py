# SPDX-License-Identifier: BSD-3-Clause
"""The doctor's findings, and the verdict that follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

# From the least severe to the most. A note needs no repair.
SEVERITIES = ("note", "degraded", "unusable")

# The verdict for each severity, and the exit status for each verdict.
VERDICTS = {"note": "usable", "degraded": "degraded", "unusable": "unusable"}
STATUSES = {"usable": 0, "degraded": 3, "unusable": 4}


class Finding(NamedTuple):
    """One thing that is not as it should be.

    Attributes
    ----------
    node : str
        The node concerned; empty if it concerns no node in particular.
    check : str
        The check that found it.
    severity : str
        One of SEVERITIES.
    what : str
        A description for people of what is wrong.
    mend : str
        The command that repairs it, or what to check; empty if no repair is needed.
    degraded_to : str
        The degraded form of collectives, if the severity is "degraded".
    leave_out : bool
        Whether the other nodes do better without this node.
    """

    node: str
    check: str
    severity: str
    what: str
    mend: str
    degraded_to: str = ""
    leave_out: bool = False

    def plain(self) -> dict[str, str]:
        """Return the fields that reports show."""
        told = ("node", "check", "severity", "what", "mend")
        return {name: getattr(self, name) for name in told}


def verdict(findings: Iterable[Finding]) -> str:
    """Return the verdict of the worst finding."""
    worst = max((SEVERITIES.index(each.severity) for each in findings), default=0)
    return VERDICTS[SEVERITIES[worst]]


def degraded_to(findings: Iterable[Finding]) -> str:
    """Return in words the degraded form of collectives; "" if they are not degraded."""
    words = [each.degraded_to for each in findings if each.severity == "degraded"]
    return "; ".join(dict.fromkeys(word for word in words if word))
