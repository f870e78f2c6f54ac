# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a file follows the rules of Chrome's Trace Event Format."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

Entry = dict[str, Any]

# Times have three decimals of a microsecond; sums of two may be off by a half each.
_ROUNDING_US = 0.002

_METADATA = {
    "process_name": "name",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def load(path: Path) -> list[Entry]:
    """Return the events of a file, which must be valid."""
    whole = json.loads(path.read_text())
    assert whole["displayTimeUnit"] in ("ms", "ns")
    entries: list[Entry] = whole["traceEvents"]
    check(entries)
    return entries


def check(entries: list[Entry]) -> None:
    """Check each event's fields, that slices nest, and that arrows have two ends."""
    slices: defaultdict[tuple[int, int], list[Entry]] = defaultdict(list)
    arrows: defaultdict[int, list[Entry]] = defaultdict(list)
    for each in entries:
        assert isinstance(each["pid"], int), each
        assert isinstance(each["tid"], int), each
        assert each["name"], each
        if each["ph"] == "M":
            (argument,) = each["args"]
            assert argument == _METADATA[each["name"]]
            continue
        assert each["ts"] >= 0, each
        if each["ph"] == "X":
            assert each["dur"] >= 0, each
            slices[each["pid"], each["tid"]].append(each)
        elif each["ph"] == "i":
            assert each["s"] in ("g", "p", "t"), each
            assert "dur" not in each
        else:
            assert each["ph"] in ("s", "f"), each
            arrows[each["id"]].append(each)
    for thread in slices.values():
        _check_nesting(thread)
    for ends in arrows.values():
        begin, end = ends
        assert (begin["ph"], end["ph"], end["bp"]) == ("s", "f", "e")
        assert begin["ts"] <= end["ts"]
        for each in ends:
            _enclosing(each, slices[each["pid"], each["tid"]])


def _check_nesting(thread: list[Entry]) -> None:
    """Check that of two slices of a thread one lies within the other, or behind it."""
    open_ends: list[float] = []
    for each in sorted(thread, key=lambda each: (each["ts"], -each["dur"])):
        while open_ends and open_ends[-1] <= each["ts"] + _ROUNDING_US:
            open_ends.pop()
        end = each["ts"] + each["dur"]
        assert not open_ends or end <= open_ends[-1] + _ROUNDING_US, each
        open_ends.append(end)


def _enclosing(arrow: Entry, thread: list[Entry]) -> Entry:
    """Return the slice that an end of an arrow belongs to."""
    return next(
        each
        for each in thread
        if each["ts"] - _ROUNDING_US
        <= arrow["ts"]
        <= each["ts"] + each["dur"] + _ROUNDING_US
    )


def of_kind(entries: list[Entry], kind: str) -> list[Entry]:
    """Return the events of a category."""
    return [each for each in entries if each.get("cat") == kind]


def within(inner: Entry, outer: Entry) -> bool:
    """Return whether a slice lies within another one, in time."""
    return (
        outer["ts"] <= inner["ts"] + _ROUNDING_US
        and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + _ROUNDING_US
    )
