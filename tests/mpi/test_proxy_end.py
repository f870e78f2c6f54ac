# SPDX-License-Identifier: BSD-3-Clause
"""Who runs whose operations, and what happens when a proxy or an adapter ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gathering import Gathering, gather_and_check, require_two_ranks
from mpi4py import MPI
from processes import Process
from proxied import LIMIT_S, WHO, Make, Proxies
from waiting import await_state

from mpimcast import Error, TransportError
from mpimcast._native.proxy import find

pytestmark = pytest.mark.network


# ---- who runs what -----------------------------------------------------------


def test_explain_adapters(make_proxied: Make, adapter: str) -> None:
    """Each rank says that firmware runs its operations, or what runs others'."""
    if not adapter:
        pytest.skip("runs with --adapter")
    comms = {who: make_proxied(who) for who in WHO}
    require_two_ranks(comms["all"])
    for comm in comms.values():
        gather_and_check(comm)
    assert comms["all"].explain(5000).runner.startswith("firmware (process ")
    said = str(comms["odd"].explain(5000))
    assert "firmware on rank" in said
    assert "host on rank 0" in said


@pytest.mark.parametrize("who", WHO)
def test_no_codes_beside_adapters(
    make_proxied: Make, adapter: str, who: str, seed: int
) -> None:
    """If any rank has an adapter, no rank sends parity, and all say so."""
    if not adapter:
        pytest.skip("runs with --adapter")
    comm = make_proxied(who, reliability="code", fault=f"loss=0.05,seed={seed}")
    require_two_ranks(comm)
    gather_and_check(comm)
    assert "adapter's firmware has no codes" in str(comm.explain(5000))
    assert comm.stats()["parity_sent"] == 0


def test_explain(make_proxied: Make, proxies: Proxies) -> None:
    """Each rank names the proxy and its process, and tells ranks apart that differ."""
    comms = {who: make_proxied(who) for who in WHO}
    require_two_ranks(comms["all"])
    for comm in comms.values():
        gather_and_check(comm)
    name, runner = proxies.name, find(proxies.name)
    assert runner is not None
    assert comms["all"].explain(5000).runner == f"proxy {name} (process {runner.pid})"
    said = str(comms["odd"].explain(5000))
    assert "; run by host on rank" in said
    assert f"but proxy {name} on rank" in said


def test_ranks_share_a_proxy(make_proxied: Make, proxies: Proxies) -> None:
    """Ranks that need a proxy at the same time start one, which all of them use."""
    name = proxies.new_name()
    comm = make_proxied("all", proxy=name)
    require_two_ranks(comm)
    assert find(name) is None
    comm.Barrier()  # nobody starts it before all have looked
    gather_and_check(comm)
    runners = comm.allgather(str(comm.explain(5000).runner))
    assert len(set(runners)) == 1
    assert str(find(name)) == runners[0]


# ---- the life of a proxy -----------------------------------------------------


def nheld(pid: int) -> int:
    """Return how many descriptors and files in memory a process has.

    Sockets do not count, since some stay members of a group for a while on purpose.
    """
    found = Path(f"/proc/{pid}/maps").read_text().count("/memfd:")
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has just been closed
            found += not str(each.readlink()).startswith("socket:")
    return found


def await_no_more(pid: int, before: int) -> None:
    """Wait until a process holds no more than before; fail if it does for too long."""
    await_state(lambda: nheld(pid), lambda held: held <= before, LIMIT_S)


@pytest.mark.parametrize("who", WHO)
def test_nothing_is_left(make_proxied: Make, proxies: Proxies, who: str) -> None:
    """A proxy keeps no bell and no memory of communicators that were freed."""
    require_two_ranks(make_proxied(who))
    gather_and_check(make_proxied(who))
    runner = find(proxies.name)
    assert runner is not None

    counts = []
    for ttl in range(2, 7):  # other settings for the endpoint, so another team
        comm = make_proxied(who, ttl=ttl)
        gather_and_check(comm)
        comm.Free()
        MPI.COMM_WORLD.Barrier()
        counts.append(nheld(runner.pid))
        MPI.COMM_WORLD.Barrier()
    await_no_more(runner.pid, counts[0])  # what ranks leave is closed a little later


def test_drain(make_proxied: Make, proxies: Proxies) -> None:
    """A proxy that drains serves its ranks to the end, and another takes its place.

    So proxies are upgraded. An operation that is in flight meanwhile ends well.
    """
    name = proxies.new_name()
    old = make_proxied("all", proxy=name)
    require_two_ranks(old)
    gather_and_check(old)
    flying = Gathering(old, 5000)
    # The others wait for rank 0.
    requests = [flying.start()] if old.rank > 0 else []
    runner = find(name)
    assert runner is not None
    with Process(runner.pid) as process:
        old.Barrier()
        if old.rank == 0:
            process.send(signal.SIGTERM)
        await_state(lambda: find(name), lambda found: found is None, LIMIT_S)
        old.Barrier()
        new = make_proxied("all", proxy=name, ttl=2)
        gather_and_check(new)
        requests = requests or [flying.start()]
        requests[0].Wait()
        flying.check()
        for comm in (old, new):
            gather_and_check(comm)
        assert new.explain(5000).runner != old.explain(5000).runner
        assert not process.has_ended(0)
        old.Barrier()
        old.Free()
        assert process.has_ended(LIMIT_S)
        gather_and_check(new)


@contextlib.contextmanager
def older_proxy(name: str) -> Iterator[None]:
    """Answer ranks in the place of a proxy of the version before, until the block ends.

    A greeting has a magic number, the version, the kind of runner, and its process.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0mpimcast-runner-{name}")
        listener.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):  # the block has ended
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        magic, version, *_ = struct.unpack("<4I", connection.recv(16))
                        connection.send(struct.pack("<4I", magic, version - 1, 1, 4711))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("who", WHO)
def test_a_proxy_of_another_version(
    make_proxied: Make, proxies: Proxies, who: str
) -> None:
    """All ranks fail, and are told what to do about it."""
    name = proxies.new_name()
    comm = make_proxied(who, proxy=name)
    require_two_ranks(comm)
    with older_proxy(name) if comm.rank == 0 else contextlib.nullcontext():
        comm.Barrier()
        with pytest.raises(TransportError) as caught:
            gather_and_check(comm)
        comm.Barrier()
    said = str(caught.value)
    assert f"cannot use the proxy {name}: " in said
    assert f"proxy {name} (process 4711) speaks version " in said
    assert "restart the older one" in said


@pytest.mark.parametrize("who", WHO)
def test_a_proxy_that_is_killed(make_proxied: Make, proxies: Proxies, who: str) -> None:
    """All ranks fail within TIMEOUT, and keep nothing; another one takes its place."""
    name, timeout_s = proxies.new_name(), 3
    first = make_proxied(who, proxy=name, ttl=3)
    require_two_ranks(first)
    gather_and_check(first)
    first.Free()
    before = nheld(os.getpid())
    comm = make_proxied(who, proxy=name, timeout=timeout_s, late_timeout=timeout_s)
    gather_and_check(comm)
    assert nheld(os.getpid()) > before
    runner = find(name)
    assert runner is not None
    with Process(runner.pid) as process:
        MPI.COMM_WORLD.Barrier()
        if comm.rank == 0:
            process.send(signal.SIGKILL)
        assert process.has_ended(LIMIT_S)
    begin_s = time.monotonic()
    with pytest.raises(Error):
        gather_and_check(comm)
    assert time.monotonic() - begin_s < 2 * timeout_s + 1
    comm.Free()
    await_no_more(os.getpid(), before)
    another = make_proxied(who, proxy=name, ttl=2)
    gather_and_check(another)
    replaced = find(name)
    assert replaced is not None
    assert replaced.pid != runner.pid


def children(parent: int) -> list[int]:
    """Return the numbers of the processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            # The name, in brackets, may have blanks in it.
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent:
                found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("who", WHO)
def test_an_adapter_that_stops(
    make_proxied: Make, adapter: str, who: str, number: signal.Signals
) -> None:
    """All ranks fail if adapters are reset, or if their processors stand still."""
    if not adapter:
        pytest.skip("runs with --adapter")
    timeout_s = 2
    comm = make_proxied(who, timeout=timeout_s, late_timeout=timeout_s)
    require_two_ranks(comm)
    gather_and_check(comm)
    runner = find(adapter)
    assert runner is not None
    comm.Barrier()
    if comm.rank == 0:
        for child in children(runner.pid):
            os.kill(child, number)
    begin_s = time.monotonic()
    with pytest.raises(Error):
        gather_and_check(comm)
    assert time.monotonic() - begin_s < 4 * timeout_s + 1
    gather_and_check(make_proxied(who, ttl=2))


def test_no_process_of_the_launcher(make_proxied: Make, proxies: Proxies) -> None:
    """A proxy has none of the variables by which an MPI library finds its job."""
    comm = make_proxied("all")
    require_two_ranks(comm)
    gather_and_check(comm)
    runner = find(proxies.name)
    assert runner is not None
    variables = Path(f"/proc/{runner.pid}/environ").read_bytes().split(b"\0")
    assert not [each for each in variables if each.startswith((b"PMI", b"OMPI_COMM"))]
    maps = Path(f"/proc/{runner.pid}/maps").read_text()
    assert "libmpi" not in maps
