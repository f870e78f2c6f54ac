# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast proxy``: its names, its ends and its exit statuses."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import Process
from support import run, run_unchecked

from mpimcast import TransportError
from mpimcast._launch import proxy
from mpimcast._native.proxy import find

COMMAND = (sys.executable, "-m", "mpimcast", "proxy")
LIMIT_S = 30

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def name() -> str:
    """Return a name that no other test's proxy has, and no other run's."""
    return f"test-{os.getpid()}-{time.time_ns():x}"


@contextlib.contextmanager
def listening(name: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a proxy that listens; kill it in the end."""
    command = [*COMMAND, "--name", name, *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.endswith(f"INFO the proxy {name} listens for ranks\n")
            assert f":{process.pid}:{process.pid} [proxy] MPIMCAST " in line
            yield process
        finally:
            process.kill()


def end(name: str) -> None:
    """End a proxy that runs in the background; fail if it does not end."""
    runner = find(name)
    assert runner is not None
    with Process(runner.pid) as process:
        process.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(name: str, number: int) -> None:
    """Without ranks it ends at once, says so, and nobody finds it any more."""
    assert find(name) is None
    with listening(name) as process:
        runner = find(name)
        assert runner == ("proxy", name, process.pid)
        process.send_signal(number)
        assert process.stderr is not None
        assert process.stderr.read().endswith(f"INFO the proxy {name} has ended\n")
        assert process.wait(LIMIT_S) == 0
    assert find(name) is None


def test_a_name_that_is_taken(name: str) -> None:
    """A second proxy of the name ends with a status of its own; others may start."""
    with listening(name):
        status, said = run_unchecked([*COMMAND, "--name", name], limit_s=LIMIT_S)
        assert status == 3
        assert said == f"mpimcast proxy: another process is the proxy {name}\n"
        with listening(f"{name}-b"):
            assert find(f"{name}-b") is not None


def test_idle(name: str) -> None:
    """A proxy that has no ranks for as long as it may ends by itself."""
    said = run([*COMMAND, "--name", name, "--idle", "0.2"], limit_s=LIMIT_S)
    assert said.endswith(f"INFO the proxy {name} has ended\n")


def test_log(name: str) -> None:
    """LOG says what is logged; the other settings are its ranks' business."""
    variables = {"MPIMCAST_LOG": "warn", "MPIMCAST_TTL": "bad"}
    command = [*COMMAND, "--idle", "0.1"]
    assert not run(command, limit_s=LIMIT_S, MPIMCAST_PROXY=name, **variables)
    status, said = run_unchecked(command, limit_s=LIMIT_S, MPIMCAST_LOG="loud")
    assert status == 2
    assert "MPIMCAST_LOG=loud is not valid" in said


def test_background(name: str) -> None:
    """It returns when the proxy listens, which belongs to no terminal or MPI job."""
    assert not run([*COMMAND, "--name", name, "--background"], limit_s=LIMIT_S)
    runner = find(name)
    assert runner is not None
    process = Path(f"/proc/{runner.pid}")
    assert os.getsid(runner.pid) != os.getsid(0)
    assert (process / "cwd").readlink() == Path("/")
    assert "libmpi" not in (process / "maps").read_text()
    status, said = run_unchecked(
        [*COMMAND, "--name", name, "--background"], limit_s=LIMIT_S
    )
    assert status == 3
    assert "another process is the proxy" in said
    end(name)


def test_a_bound_rank_starts_an_unbound_proxy(name: str) -> None:
    """A rank that is bound to a processor starts one that may run on all of them."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) == 1:
        pytest.skip("needs a second processor")
    os.sched_setaffinity(0, {min(allowed)})
    try:
        proxy.ensure(name, lambda: find(name) is not None, LIMIT_S)
    finally:
        os.sched_setaffinity(0, allowed)
    runner = find(name)
    assert runner is not None
    try:
        for thread in Path(f"/proc/{runner.pid}/task").iterdir():
            assert os.sched_getaffinity(int(thread.name)) >= allowed
    finally:
        end(name)


def test_many_start_one(name: str) -> None:
    """Of proxies that are started at once one is left, and nobody sees an error."""
    failures = []
    begin = threading.Barrier(4, timeout=LIMIT_S)

    def start() -> None:
        begin.wait()
        try:
            proxy.ensure(name, lambda: find(name) is not None, LIMIT_S)
        except TransportError as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(begin.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    end(name)
    assert find(name) is None
