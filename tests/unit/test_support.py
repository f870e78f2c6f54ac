# SPDX-License-Identifier: BSD-3-Clause
"""The tests find what a job reports."""

from __future__ import annotations

import pytest
import support

WARNING = "node:12:12 [3] MPIMCAST WARN 3 datagrams {replayed} were dropped"


def test_last_json() -> None:
    """The last object is found, though another rank's warning follows it."""
    output = f'{WARNING}\n{{"lost": 1}}\n{{"lost": 2}}\n{WARNING}\n'
    assert support.last_json(output) == {"lost": 2}


def test_no_json() -> None:
    """A job without an object fails the test, which shows the job's output."""
    with pytest.raises(pytest.fail.Exception, match="replayed"):
        support.last_json(WARNING)
