# SPDX-License-Identifier: BSD-3-Clause
"""What torch's profiler has recorded in the processes of a job that traces.

Files are found by the suffix that ``torch.profiler.tensorboard_trace_handler`` gives
them. They are in Chrome's Trace Event Format, with times that count from a base in UNIX
time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mpimcast.cli.trace.job import Traced

SUFFIX = ".pt.trace.json"

# The categories of what is shown: operators, and what the program has named.
_KINDS = ("cpu_op", "user_annotation")


class Slice(NamedTuple):
    """A span of time in a thread of a process.

    Attributes
    ----------
    name, kind : str
        What went on, and its category.
    thread : int
        The thread.
    begin_ns, end_ns : int
        When, by the clock of the process's trace.
    """

    name: str
    kind: str
    thread: int
    begin_ns: int
    end_ns: int


class Profiles(NamedTuple):
    """The profiles of a job.

    Attributes
    ----------
    slices : list of list of Slice
        For each trace of the job, what its process was doing.
    bad : list of str
        Why files could not be read.
    """

    slices: list[list[Slice]]
    bad: list[str]


def load(folder: Path, traces: Sequence[Traced]) -> Profiles:
    """Return what the profiles in a folder tell of the processes of a job."""
    slices: list[list[Slice]] = [[] for _ in traces]
    bad = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        found = _read(path, traces)
        if isinstance(found, str):
            bad.append(found)
            continue
        for known, more in zip(slices, found, strict=True):
            known.extend(more)
    return Profiles(slices, bad)


def _read(path: Path, traces: Sequence[Traced]) -> list[list[Slice]] | str:
    """Return what a profile tells of each process, or why it cannot be read."""
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        return [_of(whole, traced) for traced in traces]
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        return f"{path}: this is no profile of torch's: {error!r}"


def _of(whole: dict[str, Any], traced: Traced) -> list[Slice]:
    """Return what a profile tells of one process.

    Processes of several hosts may have the same number, but no two have the same rank.
    """
    process = traced.header.process
    if whole.get("distributedInfo", {}).get("rank", process.rank) != process.rank:
        return []
    base_ns = int(whole["baseTimeNanoseconds"]) - traced.header.ahead_ns
    return [
        _slice(each, base_ns)
        for each in whole["traceEvents"]
        if each["pid"] == process.pid and each.get("cat") in _KINDS
    ]


def _slice(event: dict[str, Any], base_ns: int) -> Slice:
    begin_ns = base_ns + round(event["ts"] * 1000)
    end_ns = begin_ns + round(event["dur"] * 1000)
    return Slice(str(event["name"]), event["cat"], int(event["tid"]), begin_ns, end_ns)
