# SPDX-License-Identifier: BSD-3-Clause
"""The documentation of counters and exit statuses matches the code."""

from __future__ import annotations

import pytest

from mpimcast.__main__ import main
from mpimcast._native import core
from mpimcast._session import choice, tally
from mpimcast.cli import commands
from mpimcast.cli.doctor.finding import STATUSES
from mpimcast.cli.info.counters import COUNTERS

OPENING = {"open_ns", "open_messages", "open_bytes"}


def test_every_counter_is_described() -> None:
    """The counters of the C library, of calls and of opening have descriptions.

    A description is a sentence.
    """
    assert not set(core.counter_names()) & OPENING
    counted = {*core.counter_names(), *choice.COUNTERS, *tally.COUNTERS, *OPENING}
    assert set(COUNTERS) == counted
    for name, counter in COUNTERS.items():
        assert counter.meaning[0].isupper(), name
        assert counter.meaning.endswith("."), name
    meanings = [counter.meaning for counter in COUNTERS.values()]
    assert len(set(meanings)) == len(meanings)


def test_units() -> None:
    """A counter whose name ends with a unit, such as ``open_ns``, has that unit."""
    abbreviated = {"ns": "nanoseconds"}
    units = {each.unit for each in COUNTERS.values()} | set(abbreviated)
    for name, counter in COUNTERS.items():
        suffix = name.rpartition("_")[2]
        if suffix in units and suffix != name:
            assert counter.unit == abbreviated.get(suffix, suffix), name


def test_info_lists_counters(capsys: pytest.CaptureFixture[str]) -> None:
    """`info --counters` prints every counter with its unit and meaning."""
    assert main(["info", "--counters"]) == 0
    said = capsys.readouterr().out
    for name, counter in COUNTERS.items():
        assert f"{name} ({counter.unit})\n" in said
        assert counter.meaning in " ".join(said.split())


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_help_tells_exit_statuses(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command's help ends with its exit statuses."""
    if name == "run":
        assert main([name, "--help"]) == 0
    else:
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert said.endswith(commands.statuses(name))
    assert "``" not in said


def test_statuses_of_the_doctor() -> None:
    """The doctor's help has the statuses of all its verdicts, and 2 for bad usage."""
    assert set(commands.COMMANDS["doctor"].statuses) == {*STATUSES.values(), 2}
