# SPDX-License-Identifier: BSD-3-Clause
"""A picture of training steps: mpimcast's operations beside torch's, on all ranks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from torch import profiler

from mpimcast.cli.trace import command

_TRACES, _NAME = "traces", "timeline.json"


def settings(folder: Path) -> dict[str, str]:
    """Return settings by which mpimcast traces to a place in a folder."""
    return {"trace": str(folder / _TRACES)}


@contextlib.contextmanager
def profiled(folder: Path, *, wanted: bool) -> Iterator[None]:
    """If wanted, have torch's profiler record this process beside mpimcast's traces."""
    if not wanted:
        yield
        return
    # Otherwise the profiler prints when it starts and stops.
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        on_trace_ready=profiler.tensorboard_trace_handler(str(folder / _TRACES)),
    ):
        yield


def write(folder: Path) -> Path:
    """Put all ranks' traces and profiles into one file for ui.perfetto.dev."""
    path = folder / _NAME
    command.main([str(folder / _TRACES), "--out", str(path)])
    return path
