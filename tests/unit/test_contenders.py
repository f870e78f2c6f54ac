# SPDX-License-Identifier: BSD-3-Clause
"""The option that chooses the benchmark's contenders."""

from __future__ import annotations

import argparse

import pytest

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
