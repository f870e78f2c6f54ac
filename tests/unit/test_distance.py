# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of distant hosts: who takes part, what is measured, and the table."""

from __future__ import annotations

import pytest

from bench import distance
from bench.distance import Case
from bench.testbed.distance import Distance
from mpimcast._settings.config import Config


def test_contenders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each RELIABILITY takes part, and TCP with what this kernel has of our choice."""
    monkeypatch.setattr(distance, "congestion_controls", lambda: ["reno", "cubic"])
    found = distance.contenders()
    assert list(found) == ["repeat", "code", "auto", "reno"]
    for name, contender in found.items():
        assert contender.ours == (name != "reno")
        if contender.ours:
            assert Config.read({}, contender.variables).reliability == name


def test_cases() -> None:
    """Messages are measured between two ranks only."""
    words = ["--ranks", "2,8", "--sizes", "64K", "--rates", "100", "--losses", "0.01"]
    options = distance.arguments([*words, "--round-trips", "25", "--loss-period", "4"])
    far = Distance(25, 0.01, 4)
    assert list(distance.cases(options, "message")) == [
        Case("message", 2, 65536, 100, far)
    ]
    assert [each.nranks for each in distance.cases(options, "Bcast")] == [2, 8]
    assert Case("message", 2, 65536, 1000, far).product_bytes == 3_125_000


def test_names(capsys: pytest.CaptureFixture[str]) -> None:
    """Names may be written in any case; unknown names are refused."""
    words = ["--collectives", "allgather,Posted-Message", "--contenders", "AUTO,bbr"]
    options = distance.arguments(words)
    assert options.collectives == ["Allgather", "posted-message"]
    assert options.contenders == ["auto", "bbr"]
    for wrong in ("--collectives=Allreduce", "--contenders=cubic"):
        with pytest.raises(SystemExit):
            distance.arguments([wrong])
        assert "there is no co" in capsys.readouterr().err


def test_rows() -> None:
    """Each contender has its quantiles, and the others' by those of repeat."""
    case = Case("Bcast", 8, 1 << 20, 100, Distance(25, 0.001))
    found = {"repeat": [0.2, 0.1, 0.4], "bbr": [0.1, 0.1, 0.1]}
    assert [row[4:] for row in distance.rows(case, found, 0)] == [
        ("repeat", "200 ms", "400 ms", "1.00", "1.00"),
        ("bbr", "100 ms", "100 ms", "2.00", "4.00"),
    ]
    (row,) = distance.rows(case, {"reno": [1.0]}, 3)
    assert row[4:] == ("reno (3 overflowed)", "1,000 ms", "1,000 ms", "", "")
