# SPDX-License-Identifier: BSD-3-Clause
"""Launch a contender's ranks on a cluster or this machine, and measure their tasks.

The ranks do nothing else while they measure a collective. The counters of links are
read before and after it, when rank 0 says so over a socket whose name all hosts see.
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
from bench.jobs.payload import payload_bytes
from bench.jobs.reading import differences, read
from bench.jobs.setup import Setup, Task
from bench.testbed.program import Program

PROGRAM = Path(__file__).with_name("ranks.py")
_LIMIT_S = 180
_POLL_S = 0.2


def run(
    cell: str,
    setup: Setup,
    contender: Contender,
    tasks: Sequence[Task],
    round_: int = 0,
) -> list[Measurement]:
    """Run a job; return a measurement of each task."""
    load, begin = os.getloadavg()[0], datetime.now(timezone.utc)
    readings: list[dict[str, dict[str, int]]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/job"
        transport = "library"
        if contender.ours:
            transport = "udp" if setup.cluster is not None else "verbs,udp"
        program = [PROGRAM, path, transport, json.dumps(tasks)]
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
    """Raise RuntimeError if data has reached a host by another way than its link.

    An MPI library that takes the hosts' namespaces for one machine uses its memory.
    """
    ports = {name: port for name, port in measurement.ports.items() if name[:2] == "to"}
    least = min((port["sent_bytes"] for port in list(ports.values())[1:]), default=None)
    # Data may be reduced on its way, so as little as one block may arrive for it.
    gathered, _, _ = measurement.collective.partition("+")
    payload = payload_bytes(gathered, measurement.nranks, measurement.block_bytes)
    if least is not None and least < payload * len(measurement.seconds):
        raise RuntimeError(
            f"{measurement.contender}: a host was sent {least} bytes in "
            f"{len(measurement.seconds)} {measurement.collective}s of {payload} each: "
            "not all went over its link"
        )


def _command(
    setup: Setup, contender: Contender, program: Sequence[str | Path]
) -> list[str | Path]:
    if setup.cluster is not None:
        described = Program(program, ROOT, contender.variables)
        return [*contender.launcher.command(setup.cluster, setup.numbers, described)]
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
    """Run the command, calling `at_mark` when rank 0 says so; return its result."""
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
            text = f"status {process.poll()} of {' '.join(map(str, command))}"
            raise RuntimeError(f"{text}\n{log.read()}")
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()


def _lines(
    listener: socket.socket, process: subprocess.Popen[bytes]
) -> Iterator[dict[str, Any]]:
    """Yield rank 0's messages; rank 0 goes on when the next one is asked for."""
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
    """Return a command's word with paths relative to the checkout."""
    return word.replace(f"{ROOT}/", "").replace(str(ROOT), ".")
