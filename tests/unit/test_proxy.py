# SPDX-License-Identifier: BSD-3-Clause
"""Proxies, without ranks: their start by a rank, their signals, their unit, words."""

from __future__ import annotations

import configparser
import contextlib
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from mpimcast import Explanation, TransportError
from mpimcast._launch import proxy
from mpimcast._native.runner import Runner, in_words
from mpimcast._session import attachment
from mpimcast._settings.config import Config
from mpimcast.cli.proxy import unit

LIMIT_S = 20

# A stand-in for Python that a rank starts: it runs these lines of a shell.
Stand = Callable[[str], Path]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    """Return a function that makes a rank start other lines than a proxy.

    The function returns the folder of the stand-in, where it runs.
    """

    def make(lines: str) -> Path:
        program = tmp_path / "python"
        program.write_text(f"#!/bin/sh\ncd {shlex.quote(str(tmp_path))}\n{lines}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        return tmp_path

    return make


def test_a_rank_starts_a_proxy(
    stand_in: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command has the name, and the environment without the launcher's part."""
    monkeypatch.setenv("PMIX_RANK", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    monkeypatch.setenv("SLURM_PROCID", "3")
    monkeypatch.setenv("MPIMCAST_LOG", "debug")
    folder = stand_in('echo "$@" > words; env > environment; touch proxy')
    proxy.ensure("seven", (folder / "proxy").exists, LIMIT_S)
    words = (folder / "words").read_text().split()
    assert words[:3] == ["-m", "mpimcast", "proxy"]
    assert " ".join(words[3:]) == "--name seven --idle 60 --background"
    names = {
        line.partition("=")[0]
        for line in (folder / "environment").read_text().splitlines()
    }
    assert {"MPIMCAST_LOG", "PATH"} <= names
    assert not names & {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}


def test_a_proxy_that_exists_is_taken(stand_in: Stand) -> None:
    """Nothing is started if there is a proxy."""
    folder = stand_in("touch started")
    proxy.ensure("seven", lambda: True, LIMIT_S)
    assert not (folder / "started").exists()


def test_ranks_that_start_at_once(stand_in: Stand) -> None:
    """Of ranks that start proxies together one gets the name; all return then."""
    nranks = 4
    folder = stand_in("mkdir name || exit 3; echo $$ > proxy")
    looks = threading.Barrier(nranks, timeout=LIMIT_S)
    failures = []

    def run() -> None:
        waits = iter([looks.wait])

        def exists() -> bool:
            for wait in waits:
                wait()  # nobody goes on before all have found no proxy
                return False
            return (folder / "proxy").exists()

        try:
            proxy.ensure("seven", exists, LIMIT_S)
        except TransportError as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(nranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * LIMIT_S)
        assert not thread.is_alive()
    assert not failures
    assert (folder / "proxy").exists()


@pytest.mark.parametrize(
    ("lines", "limit_s", "why"),
    [
        ("echo one >&2; echo no sockets left >&2; exit 1", LIMIT_S, "no sockets left;"),
        ("exit 1", LIMIT_S, "its exit status is 1;"),
        ("exec tail -f /dev/null", 0.3, "it does not listen after 0.3 s;"),
        ("exit 0", 0.3, "it does not listen after 0.3 s;"),
        ("exit 3", 0.3, "it does not listen after 0.3 s;"),
    ],
)
def test_a_proxy_that_does_not_start(
    stand_in: Stand, lines: str, limit_s: float, why: str
) -> None:
    """The error says why, and what to do."""
    stand_in(lines)
    with pytest.raises(TransportError) as caught:
        proxy.ensure("seven", lambda: False, limit_s)
    said = str(caught.value)
    assert said.startswith(f"cannot start the proxy seven: {why} try `python -m ")
    assert said.endswith("or leave out PROGRESS=proxy")


@pytest.mark.parametrize("python", ["", "/nosuch/python"])
def test_without_a_python(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that cannot start Python says so."""
    monkeypatch.setattr(sys, "executable", python)
    with pytest.raises(TransportError, match=python or "does not know where Python is"):
        proxy.ensure("seven", lambda: False, LIMIT_S)


def test_only_ranks_with_proxies_need_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other ranks look for none, and a proxied one for its own."""
    needed: list[str] = []
    monkeypatch.setattr(proxy, "ensure", lambda name, *_: needed.append(name))
    attachment.need_proxy(Config.read({"proxy": "seven"}, {}))
    assert not needed
    attachment.need_proxy(Config.read({"proxy": "seven", "progress": "proxy"}, {}))
    assert needed == ["seven"]


# ---- signals -----------------------------------------------------------------

# A process that serves as a proxy does, but for C: it tells what it is asked to do.
SERVING = """
import sys, threading
from mpimcast.cli.proxy import service
from mpimcast.errors import TransportError
class Proxy:
    def __init__(self):
        self.ends = threading.Event()
    def run(self, idle_s):
        print("runs", idle_s, flush=True)
        if idle_s == 0.5:
            raise TransportError("broken")
        self.ends.wait(None if idle_s > 1 else idle_s)
    def drain(self):
        print("drains", flush=True)
    def stop(self):
        print("stops", flush=True)
        self.ends.set()
service.block_signals()
try:
    service.run(Proxy(), float(sys.argv[1]))
except TransportError as error:
    print(error)
print("ended")
"""


@contextlib.contextmanager
def serving(idle_s: float) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Yield a process that serves, and what it prints; kill it in the end."""
    command = [sys.executable, "-c", SERVING, str(idle_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"runs {idle_s}\n"
            yield process, process.stdout
        finally:
            process.kill()


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("signals", "said"),
    [
        ([signal.SIGTERM, signal.SIGTERM], ["drains", "stops"]),
        ([signal.SIGTERM, signal.SIGINT], ["drains", "stops"]),
        ([signal.SIGINT], ["stops"]),
        ([signal.SIGUSR1, signal.SIGINT], [None, "stops"]),
    ],
)
def test_signals(signals: list[int], said: list[str | None]) -> None:
    """SIGTERM drains first, and then stops as SIGINT does at once; no other matters."""
    with serving(1e6) as (process, prints):
        for number, word in zip(signals, said, strict=True):
            process.send_signal(number)
            if word is not None:
                assert prints.readline() == f"{word}\n"
        assert prints.read() == "ended\n"
        assert process.wait(LIMIT_S) == 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("idle_s", "said"), [(0.1, "ended\n"), (0.5, "broken\nended\n")]
)
def test_ends_by_itself(idle_s: float, said: str) -> None:
    """A proxy that is idle or fails ends without a signal."""
    with serving(idle_s) as (process, prints):
        assert prints.read() == said
        assert process.wait(LIMIT_S) == 0


BEGINNING = """
import os, sys
from mpimcast.cli.proxy import background
outside = os.getsid(0)
tell = background.begin()
if sys.argv[1] == "dies":
    os._exit(0)
print("says", os.getsid(0) != outside, flush=True)
tell(int(sys.argv[1]))
print("more", os.getcwd())
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("outcome", "status", "said"),
    [("0", 0, "says True\n"), ("3", 3, "says True\n"), ("dies", 1, "")],
)
def test_background(outcome: str, status: int, said: str) -> None:
    """The process ends as its child tells, which then is silent, or as it dies."""
    command = [sys.executable, "-c", BEGINNING, outcome]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, said, "")


# ---- the unit ----------------------------------------------------------------


class Unit(configparser.ConfigParser):
    """Reads units, in which capitals count."""

    def optionxform(self, optionstr: str) -> str:
        """Return the name of an option as it stands in the unit."""
        return optionstr


def test_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The unit runs this Python, whatever its path, with the given arguments."""
    monkeypatch.setattr(sys, "executable", '/opt/my "100%" $x/python')
    text = unit.text(["--name", "seven"])
    parser = Unit(interpolation=None)
    parser.read_string(text)
    assert parser["Service"]["ExecStart"] == (
        '"/opt/my \\"100%%\\" $$x/python" -m mpimcast proxy --name seven'
    )
    assert parser["Service"]["TimeoutStopSec"] == "infinity"
    assert parser["Install"]["WantedBy"] == "default.target"
    assert "@" not in text


def test_the_unit_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """``--unit`` prints the unit with the arguments beside it, and opens no proxy."""
    from mpimcast.__main__ import main

    assert main(["proxy", "--unit", "--name", "seven", "--idle", "9"]) == 0
    said = capsys.readouterr().out
    assert f"{sys.executable} -m mpimcast proxy --name seven --idle 9\n" in said
    assert main(["proxy", "--unit"]) == 0
    assert f"{sys.executable} -m mpimcast proxy\n" in capsys.readouterr().out


# ---- words -------------------------------------------------------------------

PROXY = Runner("proxy", "seven", 4711)


@pytest.mark.parametrize(
    ("own", "labels", "words"),
    [
        (None, ["", ""], ""),
        (Runner("host"), ["host", "host"], "host"),
        (PROXY, ["proxy seven", "proxy seven"], "proxy seven (process 4711)"),
        (None, ["proxy seven", ""], "proxy seven"),
        (PROXY, ["host", "proxy seven"], "host on rank 0, but proxy seven on rank 1"),
        (
            Runner("firmware"),
            ["firmware", "", "host", "firmware"],
            "firmware on ranks 0, 3, but host on rank 2",
        ),
    ],
)
def test_runners(own: Runner | None, labels: list[str], words: str) -> None:
    """A rank names its own runner, or those of all ranks if they differ."""
    assert in_words(own, labels) == words


def test_explanation() -> None:
    """An explanation names the runner unless that is the rank itself."""
    assert str(Explanation("udp", "eth0", "host")) == "udp: eth0"
    assert str(Explanation("shm", "memory")) == "shm: memory"
    assert str(Explanation("udp", "eth0", str(PROXY))) == (f"udp: eth0; run by {PROXY}")
