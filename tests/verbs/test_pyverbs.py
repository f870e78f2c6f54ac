# SPDX-License-Identifier: BSD-3-Clause
"""A program of pyverbs alone receives chunks, and `info` lists devices by pyverbs."""

from __future__ import annotations

import json
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import support
from ranks import CHUNK_BYTES, KEYED, gather

from bench.guest.guest import Guest

# Where Debian installs pyverbs.
PACKAGE = Path("/usr/lib/python3/dist-packages/pyverbs")
NRANKS = 4
NBYTES = 3 * CHUNK_BYTES + 100
# The operations that the listener hears.
FIRST, LAST = 1, 20

# A script that runs while the job runs: it starts the listener when a rank waits before
# operation {first}, and lets the rank go on when the listener has joined the group.
LISTENER = """
until test -e reached{first}; do sleep 0.02; done
PYTHONPATH=$PYTHONPATH:{pyverbs} {python} {program} {arguments} >heard & listener=$!
until test -e listening || ! kill -0 $listener; do sleep 0.02; done
touch go{first}
wait $job
touch over
wait $listener
"""


@pytest.fixture(scope="module")
def pyverbs(guest: Guest) -> Path:
    """Return a folder from which this Python can import Debian's pyverbs."""
    # Debian's package works with every CPython of the same minor version.
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    if not (PACKAGE / f"device{suffix}").exists():
        version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        support.skip_or_fail(
            f"there is no pyverbs for {version} (Debian: python3-pyverbs)"
        )
    folder = guest.work / "pyverbs"
    folder.mkdir()
    (folder / "pyverbs").symlink_to(PACKAGE)
    return folder


def test_receiver(guest: Guest, pyverbs: Path) -> None:
    """A member of the group that uses only pyverbs receives each chunk once.

    The chunks are as PROTOCOL.md specifies.
    """
    group = "239.192.17.5"
    address = f"10.8.0.{NRANKS + 1}"
    arguments = [address, group, NRANKS, NBYTES, CHUNK_BYTES, FIRST]
    listener = LISTENER.format(
        first=FIRST,
        pyverbs=pyverbs,
        python=support.BIN / "python",
        program=Path(__file__).with_name("listener.py"),
        arguments=" ".join(map(str, arguments)),
    )
    gather(
        guest,
        NRANKS,
        beside=listener,
        program=KEYED,
        wrap="export GROUP=0xefc01105 QKEY=0x01234567",
        sizes=[NBYTES],
        repeat=LAST + 1,
        mishaps=[{"what": "meet", "rank": 0, "op": FIRST}],
    )
    (path,) = guest.work.glob("*/heard")
    heard = json.loads(path.read_text())
    nchunks = -(-NBYTES // CHUNK_BYTES)
    assert heard["chunks"] == NRANKS * nchunks * (LAST + 1 - FIRST)
    assert heard["twice"] == 0
    assert heard["channels"] == 1
    assert not {"wrong", "other immediate"} & set(heard)
    sources = [(rank, source) for rank, source, _ in heard["queues"]]
    assert sources == [(rank, f"10.8.0.{rank + 1}") for rank in range(NRANKS)]


def info(
    guest: Guest, *wrap: str, folder: Path | None = None
) -> tuple[str, dict[str, Any]]:
    """Return the output of `info`, and its JSON report's part on RDMA devices.

    Parameters
    ----------
    guest
        The guest to run it in.
    *wrap
        A command that runs it, such as setpriv.
    folder
        The folder that has pyverbs; None to do without it.
    """
    command = [*wrap, support.BIN / "python", "-m", "mpimcast", "info"]
    variables = {"PYTHONPATH": str(folder)} if folder else {}
    text = guest.run(command, limit_s=30, cwd=support.ROOT, **variables)
    report = guest.run([*command, "--json"], limit_s=30, cwd=support.ROOT, **variables)
    return text, json.loads(report)["found"]["rdma"]


def test_info(guest: Guest, pyverbs: Path) -> None:
    """`info` lists the same ports with pyverbs as with mpimcast's own driver."""
    text, by_pyverbs = info(guest, folder=pyverbs)
    assert "RDMA devices (by pyverbs)\n  rxe0:1 active, Ethernet, MTU 4096, " in text
    text, by_driver = info(guest)
    assert "RDMA devices (by mpimcast's driver)\n  rxe0:1 active, Ethernet, " in text
    assert by_pyverbs["source"] == "pyverbs"
    for one, other in zip(by_pyverbs["ports"], by_driver["ports"], strict=True):
        # pyverbs lists all GIDs; the driver lists the GID that it uses.
        gids, chosen = one.pop("gids"), other.pop("gids")
        assert len(gids) > 1
        assert chosen.items() <= gids.items()
        assert len(chosen) == 1
    assert by_pyverbs["ports"] == by_driver["ports"]
    assert [port["device"] for port in by_driver["ports"]] == [
        f"rxe{number}" for number in range(guest.devices)
    ]


def test_info_of_a_closed_device(guest: Guest, pyverbs: Path) -> None:
    """`info` reports a device that it may not open, with pyverbs and without."""
    without_right = ["setpriv", "--bounding-set=-dac_override"]
    device = "/dev/infiniband/uverbs1"
    guest.run(["chmod", "000", device], limit_s=20)
    try:
        both = [
            info(guest, *without_right, folder=folder) for folder in (pyverbs, None)
        ]
    finally:
        guest.run(["chmod", "666", device], limit_s=20)
    for text, found in both:
        assert "  rxe1: cannot be opened\n  rxe2:1 active" in text
        assert found["ports"][1] == {"device": "rxe1", "reason": "cannot be opened"}
        assert len(found["ports"]) == guest.devices
