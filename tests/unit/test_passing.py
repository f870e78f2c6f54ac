# SPDX-License-Identifier: BSD-3-Clause
"""A descriptor is passed to those who know the secret, and to no one else."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpimcast import TransportError
from mpimcast._session import passing
from mpimcast._session.passing import Door, Proofs, address, fetch, proofs

LIMIT_S = 5.0
pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def secret() -> str:
    """Return a secret that no other test has."""
    return os.urandom(8).hex()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    """Yield the descriptor of a file that contains "shared"."""
    path = tmp_path / "shared"
    path.write_text("shared")
    fd = os.open(path, os.O_RDONLY)
    yield fd
    os.close(fd)


@contextlib.contextmanager
def serving(secret: str, fd: int, *guests: Proofs) -> Iterator[None]:
    """Serve guests in a thread, as a rank does while it waits for the others."""
    door = Door(secret, 8)
    stopping = threading.Event()

    def serve() -> None:
        while not stopping.wait(0.001):
            door.serve(fd, dict(guests))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
        door.close()


def connected(secret: str) -> socket.socket:
    """Return a stranger's connection to the door."""
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stranger.settimeout(LIMIT_S)
    passing._connect(stranger, address(secret), time.monotonic() + LIMIT_S)  # noqa: SLF001
    return stranger


def is_refused(stranger: socket.socket, said: bytes) -> bool:
    """Return whether a stranger who says something gets nothing."""
    try:
        stranger.send(said)
        return socket.recv_fds(stranger, 64, 1)[:2] == (b"", [])
    except (ConnectionResetError, BrokenPipeError):
        return True


def test_passing(secret: str, file: int) -> None:
    """Each guest gets a descriptor of its own, which a new program does not inherit."""
    guests = [proofs(secret, guest, 0) for guest in (1, 2, 3)]
    with serving(secret, file, *guests):
        for guest in guests:
            fd = fetch(secret, guest, LIMIT_S)
            assert os.pread(fd, 10, 0) == b"shared"
            assert not os.get_inheritable(fd)
            os.close(fd)


def test_proofs_differ(secret: str) -> None:
    """No proof can stand for another guest, another attempt or the other end."""
    shown = {
        proof
        for each in (secret, secret + "0")
        for guest in (1, 2)
        for turn in (0, 1)
        for proof in proofs(each, guest, turn)
    }
    assert len(shown) == 16
    assert not any(secret.encode() in proof for proof in shown)
    assert secret.encode() not in address(secret)


def test_strangers_are_refused(secret: str, file: int) -> None:
    """Strangers get nothing, whatever they say, and keep no guest waiting."""
    guest = proofs(secret, 1, 0)
    with serving(secret, file, guest):
        silent = [connected(secret) for _ in range(2 * passing._GUESTS_MAX)]  # noqa: SLF001
        for said in (b"", b"x", os.urandom(32), guest.host, guest.guest + b"x"):
            with connected(secret) as stranger:
                assert is_refused(stranger, said)
        os.close(fetch(secret, guest, LIMIT_S))
        for each in silent:
            each.close()


def test_wrong_secret(secret: str, file: int) -> None:
    """A guest that was not expected is refused at once."""
    with (
        serving(secret, file, proofs(secret, 1, 0)),
        pytest.raises(TransportError, match="refuses it"),
    ):
        fetch(secret, proofs(secret, 2, 0), LIMIT_S)


def test_a_false_host(secret: str, file: int) -> None:
    """A guest does not take a descriptor from a host that does not know the secret."""
    false = Proofs(proofs(secret, 1, 0).guest, os.urandom(32))
    before = len(list(Path("/proc/self/fd").iterdir()))
    with (
        serving(secret, file, false),
        pytest.raises(TransportError, match="refuses it"),
    ):
        fetch(secret, proofs(secret, 1, 0), LIMIT_S)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_nobody_is_there(secret: str) -> None:
    """Where no rank listens, a guest learns it at once."""
    with pytest.raises(TransportError, match="Connection refused"):
        fetch(secret, proofs(secret, 1, 0), LIMIT_S)


def test_nobody_answers(secret: str) -> None:
    """A guest waits no longer than its limit for a host that is silent or overrun."""
    door = Door(secret, 0)
    waiting = []
    try:
        for _ in range(3):
            begin_s = time.monotonic()
            with pytest.raises(TransportError, match=r"within 0\.1 s"):
                fetch(secret, proofs(secret, 1, 0), 0.1)
            assert time.monotonic() - begin_s < LIMIT_S
            other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            other.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                other.connect(address(secret))
            waiting.append(other)
    finally:
        for each in waiting:
            each.close()
        door.close()


def test_another_user(secret: str, file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither end deals with a process of another user."""
    guest = proofs(secret, 1, 0)
    with serving(secret, file, guest):
        monkeypatch.setattr(passing, "peer_uid", lambda _: os.geteuid() + 1)
        with pytest.raises(TransportError, match="another user"):
            fetch(secret, guest, LIMIT_S)
        with connected(secret) as other:
            assert is_refused(other, guest.guest)


def test_a_guest_that_has_gone(secret: str, file: int) -> None:
    """A guest that goes before it is served does no harm."""
    guest = proofs(secret, 1, 0)
    door = Door(secret, 8)
    for said in (b"", guest.guest):
        with connected(secret) as other:
            other.send(said)
        door.serve(file, dict([guest]))
    door.close()


def test_a_taken_address(secret: str) -> None:
    """A second door with one secret is an error, and a closed one leaves no name."""
    door = Door(secret, 1)
    with pytest.raises(TransportError, match="in use"):
        Door(secret, 1)
    door.close()
    Door(secret, 1).close()
    name = address(secret)[1:].decode()
    assert name not in Path("/proc/net/unix").read_text()
