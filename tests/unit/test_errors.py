# SPDX-License-Identifier: BSD-3-Clause
"""The errors that users catch."""

from __future__ import annotations

import pytest

from mpimcast import ConfigError, Error, RankLeft, TimedOut, TransportError, errors


@pytest.mark.parametrize(
    "kind", [Error, ConfigError, TransportError, TimedOut, RankLeft]
)
def test_family(kind: type[Error]) -> None:
    """Every error is a RuntimeError and an Error, and has all attributes."""
    error = kind("text", epoch=3, ranks=[1, 2], missing_chunks=4)
    assert isinstance(error, RuntimeError)
    assert isinstance(error, errors.Error)
    assert str(error) == "text"
    assert (error.epoch, error.ranks, error.missing_chunks) == (3, (1, 2), 4)


def test_again() -> None:
    """An error can be raised again, as a copy with a traceback of its own."""
    first = TimedOut("text", epoch=1, ranks=(2,), missing_chunks=3)
    second = first.again()
    assert second is not first
    assert type(second) is TimedOut
    assert vars(second) == vars(first)
    assert second.args == first.args


def test_nothing_in_particular() -> None:
    """An error that concerns no operation has attributes that say so."""
    error = Error("text")
    assert (error.epoch, error.ranks, error.missing_chunks) == (None, (), 0)
