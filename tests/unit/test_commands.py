# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast``, as far as it needs no second rank."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import run, run_unchecked

COMMANDS = ("run", "info", "doctor", "demo", "bench", "sim")
COMMAND = (sys.executable, "-m", "mpimcast")


def _mpimcast(*arguments: str | Path, **env: str) -> str:
    return run([*COMMAND, *arguments], limit_s=60, **env)


def test_help() -> None:
    """It lists the commands."""
    said = _mpimcast("--help")
    assert all(f"  {name} " in said for name in COMMANDS)


def test_usage() -> None:
    """What is no command is an error."""
    status, said = run_unchecked([*COMMAND, "nonsense"], limit_s=60)
    assert status == 2
    assert "usage" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["info"],
        ["info", "--json"],
        ["doctor", "--help"],
        ["demo", "--help"],
        ["bench", "--help"],
        ["sim", "--ranks", "2", "--bytes", "1K"],
    ],
)
def test_a_reader_that_has_enough(arguments: list[str]) -> None:
    """``| head -1`` is no error worth a traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, *arguments]
    ended = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writer)
    assert ended.returncode in {0, 1}
    assert ended.stderr == b""


def test_info() -> None:
    """People read which transport would be chosen, and all settings."""
    said = _mpimcast("info", MPIMCAST_TTL="3")
    assert "* udp: usable" in said
    assert "TTL = 3 (variable)" in said
    assert "TIMEOUT = 10.0 (default)" in said


def test_info_json() -> None:
    """Programs read the same."""
    report = json.loads(_mpimcast("info", "--json", MPIMCAST_TRANSPORT="mpi"))
    keys = ["version", "built", "found", "transports", "chosen", "settings"]
    assert list(report) == keys
    assert report["chosen"] == "mpi"
    names = [each["name"] for each in report["transports"]]
    assert names == ["verbs", "udp", "mpi"]
    for each in report["transports"]:
        assert list(each) == ["name", "usable", "reason"]
        assert each["usable"] or each["name"] == "verbs"
        assert each["reason"]
    assert all(
        list(each) == ["name", "value", "source", "doc"] for each in report["settings"]
    )


def test_info_says_why_not() -> None:
    """A transport that cannot be used has its reason there."""
    report = json.loads(_mpimcast("info", "--json", MPIMCAST_NET_DEVICES="nosuch0"))
    udp = report["transports"][1]
    assert not udp["usable"]
    assert "nosuch0" in udp["reason"]
    assert report["chosen"] == "mpi"


def test_info_with_bad_settings() -> None:
    """A bad variable is an error that names the choices."""
    status, said = run_unchecked(
        [*COMMAND, "info"], limit_s=60, MPIMCAST_TRANSPORT="tcp"
    )
    assert status == 1
    assert "MPIMCAST_TRANSPORT=tcp" in said
    assert "auto or verbs or udp or mpi" in said


@pytest.mark.parametrize("arguments", [[], ["-m"], ["-x", "script.py"]])
def test_run_usage(arguments: list[str]) -> None:
    """Nothing to run is an error."""
    status, said = run_unchecked([*COMMAND, "run", *arguments], limit_s=60)
    assert status == 2
    assert "usage" in said


def test_demo_without_its_file() -> None:
    """A file that is not there is named."""
    status, said = run_unchecked(
        [*COMMAND, "demo", "nosuch.npz"], limit_s=60, PMI_RANK="0"
    )
    assert status == 2
    assert "nosuch.npz" in said
