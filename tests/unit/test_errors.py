# SPDX-License-Identifier: BSD-3-Clause
"""The errors that users catch."""

from __future__ import annotations

import pytest

from mpimcast import ConfigError, Error, RankLeft, TimedOut, TransportError, errors


@pytest.mark.parametrize(
    "kind", [Error, ConfigError, TransportError, TimedOut, RankLeft]
)
def test_classes(kind: type[Error]) -> None:
    """An error of any class is an Error and a RuntimeError, with all attributes."""
    error = kind("text", epoch=3, ranks=[1, 2], missing_chunks=4)
    assert isinstance(error, RuntimeError)
    assert isinstance(error, errors.Error)
    assert str(error) == "text"
    assert (error.epoch, error.ranks, error.missing_chunks) == (3, (1, 2), 4)


def test_again() -> None:
    """An error can be copied, and each copy raised with a separate traceback."""
    first = TimedOut("text", epoch=1, ranks=(2,), missing_chunks=3)
    second = first.again()
    assert second is not first
    assert type(second) is TimedOut
    assert vars(second) == vars(first)
    assert second.args == first.args


def test_defaults() -> None:
    """An error that is not about an operation has no epoch, no ranks and no chunks."""
    error = Error("text")
    assert (error.epoch, error.ranks, error.missing_chunks) == (None, (), 0)
