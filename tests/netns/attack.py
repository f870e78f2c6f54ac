# SPDX-License-Identifier: BSD-3-Clause
"""A job that is attacked, its attacker, what arrives, and what the doctor sees."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import support
from job import OPENMPI, Job
from typing_extensions import Self

from bench.testbed.cluster import Cluster, address
from bench.testbed.host import Host
from bench.testbed.launcher import Launcher

NRANKS = 4
BLOCK_BYTES = 20_000
_WATCH_S = 0.7


class AttackedJob(Job):
    """A job whose ranks say what they have seen; see attacked.py."""

    program = Path(__file__).with_name("attacked.py")
    _nasked = 0

    def ask(self) -> list[dict[str, Any]]:
        """Return what each rank has seen until now."""
        (self.folder / f"ask{self._nasked}").touch()
        names = [f"{rank}.{self._nasked}.json" for rank in range(self.nranks)]
        for name in names:
            self.await_file(name)
        self._nasked += 1
        return [json.loads((self.folder / name).read_text()) for name in names]

    def stop(self) -> None:
        """Stop the job, whose ranks must all end well."""
        (self.folder / "stop").touch()
        for rank in range(self.nranks):
            self.await_file(f"{rank}.end")

    def failures(self) -> list[str]:
        """Return the errors of the ranks that have failed."""
        found = self.folder.glob("*.failed")
        return [json.loads(path.read_text())["error"] for path in found]


class Attacker:
    """The attacker, as a process on a host, until a ``with`` block ends."""

    def __init__(self, host: Host, seed: int) -> None:
        program = Path(__file__).with_name("attacker.py")
        self._process = subprocess.Popen(
            [*host.enter(), sys.executable, program, "eth0", str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        """Return the attacker, once it gets all multicast."""
        assert self._line() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        """End the attacker."""
        self._process.kill()
        self._process.communicate()

    def send(self, name: str, count: int) -> dict[str, Any]:
        """Send `count` datagrams of a forgery; return what the attacker says of it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name} {count}\n")
        self._process.stdin.flush()
        said: dict[str, Any] = json.loads(self._line())
        return said

    def hear(self, count: int) -> list[bytes]:
        """Return datagrams that ranks multicast: `count` of them, or a few more."""
        return [bytes.fromhex(each) for each in self.send("hear", count)["heard"]]

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextlib.contextmanager
def attacked(
    cluster: Cluster,
    folder: Path,
    seed: int,
    *,
    protect: str,
    launcher: Launcher = OPENMPI,
    **spec: float,
) -> Iterator[tuple[AttackedJob, Attacker]]:
    """Run a job on the first hosts, and an attacker on the last one.

    Parameters
    ----------
    cluster
        The hosts.
    folder
        The job's directory.
    seed
        The attacker's seed.
    protect
        The job's PROTECT.
    launcher
        The launcher of the MPI library.
    **spec
        `pause_s` and `repeats` of attacked.py, if they are not 0 and False.
    """
    job = AttackedJob(
        cluster,
        NRANKS,
        folder,
        launcher=launcher,
        settings={"protect": protect},
        block=BLOCK_BYTES,
        **{"pause_s": 0, "repeats": False, **spec},
    )
    with job:
        job.ask()  # so the ranks have begun
        with Attacker(cluster.hosts[-1], seed) as attacker:
            yield job, attacker


class Arrivals:
    """Counts, at the hosts of a job, of what the attacker's host has sent there.

    They leave out what claims to come from the receiving host itself, which its kernel
    refuses.

    Attributes
    ----------
    cluster : Cluster
        The hosts.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._hosts = cluster.hosts[:NRANKS]
        said = cluster.hosts[-1].run("ip", "-json", "link", "show", "eth0")
        mac = json.loads(said)[0]["address"]
        for number, host in enumerate(self._hosts):
            host.run(
                *("nft", "-f", "-"),
                given="table netdev attack {\n chain arrivals {\n"
                "type filter hook ingress device eth0 priority 0;\n"
                f"ether saddr {mac} ip saddr != {address(number)} ip protocol udp "
                "counter\n}\n}\n",
            )

    def counts(self) -> tuple[list[int], list[int], list[int]]:
        """Return what each host has counted until now.

        The first counts are of what the attacker has sent there; the next are of all
        datagrams for which the kernel has no socket, or that a socket's filter refuses;
        the last are of those for which a receive buffer had no room.
        """
        arrived, refused, overflowed = [], [], []
        script = "nft --json list table netdev attack; cat /proc/net/snmp"
        for host in self._hosts:
            rules, *lines = host.run("sh", "-c", script).splitlines()
            (rule,) = (
                each["rule"] for each in json.loads(rules)["nftables"] if "rule" in each
            )
            arrived += [
                step["counter"]["packets"] for step in rule["expr"] if "counter" in step
            ]
            names, values = (
                line.split()[1:] for line in lines if line.startswith("Udp:")
            )
            counts = dict(zip(names, map(int, values), strict=True))
            overflowed.append(counts["RcvbufErrors"])
            others = counts["InErrors"] - counts["RcvbufErrors"]
            refused.append(counts["NoPorts"] + others + counts["IgnoredMulti"])
        return arrived, refused, overflowed


def watch(host: Host, *prefix: str) -> tuple[int, list[dict[str, str]], dict[str, Any]]:
    """Watch a host's network; return the doctor's status, findings and whole report.

    The findings are those that are no notes.

    The doctor is started by the words of `prefix`.
    """
    command = [sys.executable, "-m", "mpimcast", "doctor", "security", "--json", "-"]
    done = subprocess.run(
        [*host.enter(support.ROOT), *prefix, *command, "--seconds", str(_WATCH_S)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    print(json.dumps(document, indent=1))
    serious = [each for each in document["findings"] if each["severity"] != "note"]
    return done.returncode, serious, document
