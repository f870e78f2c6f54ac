# SPDX-License-Identifier: BSD-3-Clause
"""Launch a contender's ranks on a cluster or this machine, and measure their tasks.

The ranks do nothing else while they measure a collective. The counters of links are
read before and after it, when rank 0 says so over a socket whose name all hosts see.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from bench.jobs.contenders import ROOT, Contender
from bench.jobs.measurement import Measurement, Network
from bench.jobs.payload import payload_bytes
from bench.testbed.cluster import Cluster, Loss
from bench.testbed.flow import Flow
from bench.testbed.program import Program

PROGRAM = Path(__file__).with_name("ranks.py")
_LIMIT_S = 180
_POLL_S = 0.2


class Task(NamedTuple):
    """A collective to repeat, with blocks of one size."""

    collective: str
    nbytes: int
    iterations: int


class Setup(NamedTuple):
    """What jobs run on: the hosts of their ranks, and the network between them.

    Attributes
    ----------
    network : Network
        The network, as measurements describe it.
    numbers : sequence of int
        The host of each rank; on one machine only their count matters.
    cluster : Cluster or None
        The cluster, or None for this machine.
    loss : Loss or None
        The active loss, if any.
    rival : Flow or None
        The TCP stream that shares the link to rank 1's host, if any.
    """

    network: Network
    numbers: Sequence[int]
    cluster: Cluster | None = None
    loss: Loss | None = None
    rival: Flow | None = None


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
        answer = _converse(command, path, lambda: readings.append(_read(setup)))
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
            **_differences(readings[2 * index], readings[2 * index + 1]),
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


def _read(setup: Setup) -> dict[str, dict[str, int]]:
    """Return the present counts of links, loss and the rival stream, and the time."""
    if setup.cluster is None:
        return {}
    ports = setup.cluster.ports()
    names = [f"{kind}{number}" for kind in ("host", "to") for number in setup.numbers]
    names += [name for name in ports if name.startswith("trunk")]
    counts = {name: asdict(ports[name]) for name in names}
    if setup.loss is not None:
        buffers, nbytes = setup.loss.dropped()
        counts["lost"] = {"buffers": buffers, "bytes": nbytes}
    if setup.rival is not None:
        counts["rival"] = {"bytes": setup.rival.received_bytes()}
    counts["clock"] = {"ns": time.monotonic_ns()}
    return counts


def _differences(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    spent = {
        name: {key: after[name][key] - before[name][key] for key in before[name]}
        for name in before
    }
    return {
        "lost": spent.pop("lost", {}),
        "rival_bytes": spent.pop("rival", {"bytes": 0})["bytes"],
        "span_s": 1e-9 * spent.pop("clock", {"ns": 0})["ns"],
        "ports": spent,
    }


def shown(word: str) -> str:
    """Return a command's word with paths relative to the checkout."""
    return word.replace(f"{ROOT}/", "").replace(str(ROOT), ".")


def machine() -> dict[str, Any]:
    """Return a description of the machine, without its name."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        models = (line.partition(":")[2] for line in lines if "model name" in line)
        processor = next(models, processor).strip()
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
    }
