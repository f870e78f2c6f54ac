# SPDX-License-Identifier: BSD-3-Clause
"""Launch a contender's ranks on a cluster or this machine, and measure their tasks.

The counters of links are read before the first and after the last operation of a task.
Rank 0 says when, over a Unix socket, and the ranks wait until the counters have been
read. All hosts are on this machine, so they see the socket's path.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench.jobs.contenders import ROOT, Contender
from bench.jobs.machine import machine
from bench.jobs.measurement import Measurement
from bench.jobs.payload import MESSAGES, STEPS, gathered_bytes
from bench.jobs.reading import differences, read
from bench.jobs.setup import Setup, Task
from bench.testbed.program import Program

PROGRAM = Path(__file__).with_name("ranks.py")
TRAINING = Path(__file__).with_name("training_ranks.py")
MESSAGING = Path(__file__).with_name("messages.py")
_LIMIT_S = 180
_POLL_S = 0.2  # how often to check whether the launcher has ended


def run(
    cell: str,
    setup: Setup,
    contender: Contender,
    tasks: Sequence[Task],
    round_: int = 0,
) -> list[Measurement]:
    """Run a job; return a measurement of each task.

    All tasks must be of one kind: training steps, messages or collectives. Raise
    RuntimeError if the job fails, or if data bypassed the links.
    """
    load, begin = os.getloadavg()[0], datetime.now(timezone.utc)
    readings: list[dict[str, dict[str, int]]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/job"
        program = [
            _program(tasks),
            path,
            *_arguments(setup, contender),
            json.dumps(tasks),
        ]
        command = _command(setup, contender, program)
        answer = _converse(command, path, lambda: readings.append(read(setup)))
    loads = [load, os.getloadavg()[0]]
    words = [shown(str(word)).replace(path, "SOCKET") for word in command]
    measurements = [
        Measurement(
            cell=cell,
            contender=contender.name,
            collective=task.collective,
            nranks=len(setup.numbers),
            block_bytes=task.nbytes,
            round=round_,
            network=setup.network,
            **found,
            **differences(readings[2 * index], readings[2 * index + 1]),
            versions=answer["versions"],
            machine=machine(),
            load=loads,
            begin=begin.isoformat(timespec="seconds"),
            command=words,
        )
        for index, (task, found) in enumerate(zip(tasks, answer["found"], strict=True))
    ]
    for measurement in measurements:
        check_links(measurement)
    return measurements


def check_links(measurement: Measurement) -> None:
    """Raise RuntimeError if data has reached a host without crossing its link.

    That happens if an MPI library finds that the hosts are namespaces of one machine,
    and uses its memory.
    """
    ports = [port for name, port in measurement.ports.items() if name[:2] == "to"]
    # The first host is left out, since the root of a Bcast receives nothing.
    least = min((port["sent_bytes"] for port in ports[1:]), default=None)
    # Reductions do not count: a tree of ranks may send a host only few bytes of them.
    payload = gathered_bytes(
        measurement.collective,
        measurement.nranks,
        measurement.block_bytes,
        measurement.network.ranks_per_host,
    )
    if least is not None and least < payload * len(measurement.seconds):
        raise RuntimeError(
            f"{measurement.contender}: a host was sent {least} bytes in "
            f"{len(measurement.seconds)} {measurement.collective}s of {payload} each: "
            "not all went over its link"
        )


def _program(tasks: Sequence[Task]) -> Path:
    """Return the program of the ranks that can carry out these tasks."""
    kinds = {task.collective for task in tasks}
    if kinds & set(MESSAGES):
        return MESSAGING
    return TRAINING if kinds & set(STEPS) else PROGRAM


def _arguments(setup: Setup, contender: Contender) -> list[str]:
    """Return the arguments that tell the ranks which operations to measure."""
    options = [
        *["--shared"] * contender.shared,
        *["--threads"] * contender.threads,
        *["--whole"] * setup.whole,
        *["--meeting"] * (setup.network.round_trip_ms > 0),
        *("--interface", "lo" if setup.cluster is None else "eth0"),
    ]
    if contender.gloo:
        return [*options, "gloo"]
    if not contender.ours:
        return [*options, "library"]
    if contender.defaults:
        return [*options, "default"]
    return [*options, "udp" if setup.cluster is not None else "shm"]


def _command(
    setup: Setup, contender: Contender, program: Sequence[str | Path]
) -> list[str | Path]:
    """Return the command that launches a program's ranks, given Python's arguments."""
    if setup.cluster is not None:
        python_program = Program(program, ROOT, contender.variables)
        launcher = contender.launcher
        return [*launcher.command(setup.cluster, setup.numbers, python_program)]
    environment, nranks = contender.launcher.environment, str(len(setup.numbers))
    start = [environment / "mpiexec", "-n", nranks]
    if contender.launcher.name == "openmpi":
        start = [environment / "mpirun", "--bind-to", "none", "-n", nranks]
    variables = [f"{name}={value}" for name, value in contender.variables.items()]
    root = ("OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
    return ["env", *root, *variables, *start, environment / "python", *program]


def _converse(
    command: Sequence[str | Path], path: str, at_mark: Callable[[], None]
) -> dict[str, Any]:
    """Run a command that launches ranks; return the result that rank 0 sends.

    Rank 0 sends a message over the socket `path` before and after the operations of
    each task, and `at_mark` is called for each. Raise RuntimeError if the command fails
    or sends no result.
    """
    with socket.socket(socket.AF_UNIX) as listener, tempfile.TemporaryFile("w+") as log:
        listener.bind(path)
        listener.listen()
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            result: dict[str, Any] = {}
            with contextlib.suppress(OSError):
                for message in _lines(listener, process):
                    if message["state"] == "result":
                        result = message
                    else:
                        at_mark()
                process.wait(_LIMIT_S)
            if result and process.returncode == 0:
                return result
            log.seek(0)
            what = f"status {process.poll()} of {' '.join(map(str, command))}"
            raise RuntimeError(f"{what}\n{log.read()}")
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()


def _lines(
    listener: socket.socket, process: subprocess.Popen[bytes]
) -> Iterator[dict[str, Any]]:
    """Yield rank 0's messages, each of which is answered when the next is asked for.

    Rank 0 waits for the answer. There are no messages if the process ends before it
    connects.
    """
    listener.settimeout(_POLL_S)
    while True:
        try:
            connection, _ = listener.accept()
            break
        except TimeoutError:
            if process.poll() is not None:
                return
    connection.settimeout(_LIMIT_S)
    with connection, connection.makefile("rw") as line:
        for text in line:
            yield json.loads(text)
            line.write("\n")
            line.flush()


def shown(word: str) -> str:
    """Return a word of a command, with paths made relative to the checkout."""
    return word.replace(f"{ROOT}/", "").replace(str(ROOT), ".")
