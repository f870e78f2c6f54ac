# SPDX-License-Identifier: BSD-3-Clause
"""The option that chooses the benchmark's contenders, and those installed."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from bench.cells.cells import CELLS
from bench.cells.effort import Effort
from bench.jobs import contenders
from bench.jobs.contenders import CONTENDERS


def parse(*arguments: str) -> tuple[contenders.Contender, ...]:
    """Return the contenders that the arguments of a command choose."""
    parser = argparse.ArgumentParser(prog="command")
    contenders.add_option(parser, "default: all")
    chosen: tuple[contenders.Contender, ...] = parser.parse_args(arguments).contenders
    return chosen


@pytest.mark.parametrize("option", ["--contenders", "--ways"])
def test_names(option: str) -> None:
    """Contenders are chosen by a list of names, under the option's old name too."""
    chosen = parse(option, "openmpi-tuned,mpimcast")
    assert chosen == (CONTENDERS["openmpi-tuned"], CONTENDERS["mpimcast"])
    assert parse() == ()


def test_the_old_name_is_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    """The help shows the option under its new name only."""
    with pytest.raises(SystemExit):
        parse("--help")
    said = capsys.readouterr().out
    assert "--contenders" in said
    assert "--ways" not in said


def test_unknown_contender(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown name is a usage error, which lists the names that exist."""
    with pytest.raises(SystemExit):
        parse("--contenders", "mpich,mpi")
    said = capsys.readouterr().err
    assert "unknown: mpi; there are mpimcast," in said


def test_gloo_that_is_not_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without torch gloo and T are left out with a note; to ask for gloo is an error.

    An installation that was interrupted does not count: its last file is missing.
    """
    monkeypatch.setattr(contenders, "GLOO_ENVIRONMENT", tmp_path)
    (tmp_path / "lib").mkdir()
    assert "gloo" not in [each.name for each in contenders.installed()]
    assert "left out, since not installed:" in capsys.readouterr().out
    assert list(CELLS["T"].measure(Effort())) == []
    assert "cell T is left out" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        parse("--contenders", "mpimcast,gloo")
    assert "not installed: gloo;" in capsys.readouterr().err
    (tmp_path / "installed").touch()
    assert contenders.installed()[-1] == CONTENDERS["gloo"]
    assert parse("--contenders", "gloo") == (CONTENDERS["gloo"],)


def test_gloo_is_no_peer() -> None:
    """Every contender is mpimcast, a peer of it, or gloo."""
    assert {*CONTENDERS, contenders.BARE} == (
        contenders.OUR_CONTENDERS | contenders.PEERS | {contenders.GLOO}
    )
    assert not contenders.OUR_CONTENDERS & contenders.PEERS
    assert contenders.GLOO not in contenders.PEERS
