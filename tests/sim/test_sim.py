# SPDX-License-Identifier: BSD-3-Clause
"""The protocol in the simulator: random cases, single properties, and the command."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from simulated import HEADER_BYTES, MS, MULTICAST, POLICIES, REPAIR, run

from mpimcast.cli.sim import simulator as sim
from mpimcast.cli.sim.command import failure_text, main
from mpimcast.errors import ConfigError


def command(arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m mpimcast sim`` with arguments, which are separated by blanks."""
    return subprocess.run(
        [sys.executable, "-m", "mpimcast", "sim", *arguments.split()],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


# ---- random cases ------------------------------------------------------------
#
# A random case is a spec that follows from a number. A crowd is a case with many ranks
# that stall, on an unsteady network.


def find_broken_case(first: int, count: int, crowd: tuple[int, int] | None) -> str:
    """Run `count` random cases, beginning with number `first`, in a separate process.

    Parameters
    ----------
    first, count
        The number of the first case, and how many cases to run.
    crowd
        The least and the greatest number of ranks in crowds; None for cases of few
        ranks.

    Returns
    -------
    str
        How to repeat the first broken case, and what broke; "" if nothing did.
    """
    of = f"--crowd {crowd[0]} {crowd[1]} " if crowd else ""
    done = command(f"{of}--case {first} --cases {count}")
    if done.returncode == 0:
        return ""
    if done.returncode == 1:
        return done.stdout
    if count > 1:  # The process crashed: find the case in which it did.
        return find_broken_case(first, count // 2, crowd) or find_broken_case(
            first + count // 2, count - count // 2, crowd
        )
    crash = signal.strsignal(-done.returncode)
    return failure_text(first, f"{crash}\n{done.stderr}", crowd)


def check_cases(
    first: int, count: int, batch: int, crowd: tuple[int, int] | None = None
) -> None:
    """Run random cases in two processes at a time, `batch` cases in each."""
    starts = range(first, first + count, batch)
    with ThreadPoolExecutor(2) as pool:
        for broken in pool.map(
            lambda start: find_broken_case(start, batch, crowd), starts
        ):
            assert not broken, broken


def children_s() -> float:
    """Return the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.timeout(600)
def test_random_cases(capsys: pytest.CaptureFixture[str]) -> None:
    """In 10,000 random cases every property holds, such as right bytes or an error."""
    begin_s = children_s()
    check_cases(0, 10_000, 500)
    used_s = children_s() - begin_s
    with capsys.disabled():
        print(f" {10_000 / used_s:.0f} cases per second and processor")


@pytest.mark.parametrize("other", ["--json", "--kind=bcast", "--late-rank=3"])
def test_what_cases_draw_is_refused(
    other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options that random cases would ignore are refused with words."""
    with pytest.raises(SystemExit):
        main(["--cases", "3", other])
    assert "beside --cases only" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_random_cases() -> None:
    """In 100,000 other random cases every property holds."""
    check_cases(1_000_000, 100_000, 2_000)


@pytest.mark.timeout(600)
def test_random_crowds(*, long: bool) -> None:
    """In 200 random crowds of 33 to 128 ranks, or 500, every property holds."""
    check_cases(0, 500 if long else 200, 25, (33, 128))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_large_random_crowds() -> None:
    """In 3,100 other random crowds, of up to 1024 ranks, every property holds."""
    check_cases(1_000_000, 3_000, 100, (33, 128))
    check_cases(2_000_000, 100, 5, (129, 1024))


# ---- properties of runs ------------------------------------------------------


def test_same_seed_same_run() -> None:
    """A run depends on its spec and on nothing else."""
    spec = sim.case_spec(12)
    assert sim.run(spec) == sim.run(spec)


@pytest.mark.timeout(60)
def test_188_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    """An operation on the paper's 188 ranks is simulated within a minute."""
    begin_s = time.perf_counter()
    result = run(nranks=188, block_bytes=65536, loss_ppm=1000)
    with capsys.disabled():
        print(f" {time.perf_counter() - begin_s:.2f} s")
    assert result["stamped"]
    assert sum(rank["lost_chunks"] for rank in result["ranks"]) > 0


@pytest.mark.parametrize("nranks", [2, 3, 16, 64, 65])
@pytest.mark.parametrize("repair", POLICIES)
def test_every_block_is_sent_once(nranks: int, repair: int) -> None:
    """Without loss a rank multicasts each of its 16 chunks once, and repairs none."""
    result = run(nranks=nranks, block_bytes=65536, repair=repair)
    for rank in result["ranks"]:
        assert rank["tx"]["datagrams"][MULTICAST] == 16
        assert rank["tx"]["bytes"][MULTICAST] == 65536 + 16 * HEADER_BYTES
        assert rank["rx"]["datagrams"][MULTICAST] >= 16 * (nranks - 1)
        assert rank["lost_chunks"] == 0
        assert rank["tx"]["datagrams"][REPAIR] == 0


@pytest.mark.parametrize("repair", POLICIES)
@pytest.mark.parametrize(("nranks", "deaf"), [(2, 1), (4, 0b1000), (8, 255), (16, 6)])
def test_multicast_that_dies(nranks: int, deaf: int, repair: int) -> None:
    """When some ranks stop hearing multicast, blocks soon go round a ring by unicast.

    At most two more operations are multicast. In the ring, each rank receives a block
    hardly more than once. `deaf` has a bit for each rank that hears no multicast.
    """
    nops, nhealthy = 10, 3
    healthy = run(nranks=nranks, block_bytes=65536, nops=nhealthy, repair=repair)
    result = run(
        nranks=nranks,
        block_bytes=65536,
        nops=nops,
        repair=repair,
        deaf_ranks=deaf,
        deaf_ns=healthy["time_ns"],
    )
    multicast = {rank["tx"]["datagrams"][MULTICAST] // 16 for rank in result["ranks"]}
    assert len(multicast) == 1
    assert nhealthy <= multicast.pop() <= nhealthy + 2
    for rank in result["ranks"]:
        assert rank["done_ops"] == nops
        needed = (nops - nhealthy) * (nranks - 1) * 16
        assert rank["rx"]["datagrams"][REPAIR] < 1.5 * needed


@pytest.mark.parametrize("repair", POLICIES)
@pytest.mark.parametrize(("nranks", "longest_us"), [(3, 50), (8, 100), (17, 200)])
def test_a_ring_waits_for_no_retry(nranks: int, longest_us: int, repair: int) -> None:
    """An operation by unicast takes at most `longest_us`, less than a retry would take.

    So a request is answered even if it arrives at a rank that has not yet entered.
    """
    spec = {
        "nranks": nranks,
        "block_bytes": 65536,
        "repair": repair,
        "deaf_ranks": (1 << nranks) - 1,
    }
    # The first operations are still multicast.
    four_ns, fourteen_ns = (run(nops=nops, **spec)["time_ns"] for nops in (4, 14))
    assert fourteen_ns - four_ns < 10 * longest_us * 1000


def test_a_trunk_carries_each_block_once() -> None:
    """A leaf switch's link to the spine carries each block of its 4 ranks once."""
    result = run(nranks=16, nswitches=4, block_bytes=65536)
    links = {link["name"]: link for link in result["links"]}
    nchunks, headers_bytes = 16, HEADER_BYTES + 42  # with Ethernet, IP and UDP
    for leaf in range(4):
        nbytes = links[f"leaf {leaf} up"]["bytes"]
        assert 4 * (65536 + nchunks * headers_bytes) <= nbytes < 4 * 65536 * 1.2


def test_few_repairs() -> None:
    """There are fewer than 3 repairs for each datagram that the network loses."""
    for repair in POLICIES:
        result = run(nranks=8, block_bytes=1 << 20, loss_ppm=10_000, repair=repair)
        lost = sum(rank["lost_chunks"] for rank in result["ranks"])
        dropped = sum(link["lost_datagrams"] for link in result["links"])
        resent = sum(rank["tx"]["datagrams"][REPAIR] for rank in result["ranks"])
        assert lost > 0
        assert resent < 3 * dropped


@pytest.mark.parametrize("chains", [0, 1, 2, 2**32 - 1])
def test_windows_prevent_overrun(chains: int) -> None:
    """No receive buffer overflows, whether there is one chain or one for each rank.

    0 lets ranks choose the number of chains; the largest value means one for each rank.
    """
    for buffer_bytes in (64 << 10, 256 << 10, 1 << 20):
        result = run(
            nranks=8,
            block_bytes=1 << 20,
            chains=chains,
            buffer_bytes=buffer_bytes,
            wake_ns=20_000,
        )
        assert all(rank["overrun_datagrams"] == 0 for rank in result["ranks"])


@pytest.mark.parametrize(
    ("before_end_ns", "delay_ns"),
    [
        # The rank has sent all its data. Only senders whose windows are full wait for
        # it, for 5 ms.
        (100_000, 6 * MS),
        # The other ranks need the rank's block, and get it when the rank goes on.
        (400_000, 21 * MS),
    ],
)
def test_a_straggler_delays_nobody_for_long(before_end_ns: int, delay_ns: int) -> None:
    """The others wait no longer than necessary for a rank that stands still for 20 ms.

    The rank stops `before_end_ns` before the end of a healthy run. All others end at
    most `delay_ns` later than in a healthy run.
    """
    spec = {"nranks": 8, "block_bytes": 1 << 20, "buffer_bytes": 256 << 10, "nops": 8}
    healthy_ns = run(**spec)["time_ns"]
    result = run(
        **spec,
        stalled_rank=3,
        stall_begin_ns=healthy_ns - before_end_ns,
        stall_ns=20 * MS,
        stall_period_ns=100 * MS,
    )
    ends = [rank["end_ns"] for rank in result["ranks"]]
    assert ends.pop(3) > healthy_ns + 19 * MS
    assert max(ends) < healthy_ns + delay_ns


@pytest.mark.parametrize("repair", POLICIES)
def test_a_late_rank_is_waited_for(repair: int) -> None:
    """All wait for a rank that enters 3 s late, and end within 0.1 s of its entry."""
    result = run(nranks=5, delayed_rank=2, delay_ns=3_000 * MS, repair=repair)
    assert result["time_ns"] >= 3_000 * MS
    assert result["time_ns"] < 3_100 * MS


def test_a_dead_rank_is_an_error_on_all_others() -> None:
    """When a rank dies, all others fail soon after TIMEOUT."""
    result = run(
        nranks=6, block_bytes=8 << 20, dead_rank=4, dead_ns=1 * MS, timeout_ns=500 * MS
    )
    for index, rank in enumerate(result["ranks"]):
        if index != 4:
            assert rank["error"] < 0
            assert rank["end_ns"] < 2_000 * MS


def test_a_cancelled_rank_is_an_error_on_all_others() -> None:
    """Ctrl-C on one rank ends the operation on all ranks, at once."""
    result = run(
        nranks=6, block_bytes=8 << 20, cancelling_rank=4, cancel_ns=MS, loss_ppm=1000
    )
    for rank in result["ranks"]:
        assert rank["error"] < 0
        assert rank["end_ns"] < 100 * MS


@pytest.mark.parametrize("kind", range(9))
@pytest.mark.parametrize("nth", range(3))
@pytest.mark.parametrize("repair", POLICIES)
def test_last_control_datagram_lost(kind: int, nth: int, repair: int) -> None:
    """One of the last three control messages of each kind may be lost."""
    run(
        nranks=7,
        block_bytes=200_000,
        window_bytes=100_000,
        loss_ppm=20_000,
        repair=repair,
        drop_kind=kind,
        drop_nth=nth,
    )


def test_faults_wrap_the_endpoints() -> None:
    """The setting FAULT also works in the simulator."""
    fault = "loss=0.1,dup=0.02,reorder=0.05,seed=99;corrupt=0.05,kind=all"
    result = run(nranks=4, block_bytes=300_000, fault=fault)
    assert sum(rank["lost_chunks"] for rank in result["ranks"]) > 0


# ---- the simulator's own checks ----------------------------------------------


def test_a_chunk_sent_twice_is_a_violation() -> None:
    """The simulator's monitor notices a sender that multicasts a chunk twice."""
    spec = {"fault": "dup=0.5,dir=tx,kind=multicast", "block_bytes": 1 << 20}
    assert "multicast twice" in sim.run(spec)["violation"]
    assert sim.run({**spec, "unwatched": 1})["violation"] == ""


def test_a_broken_header_is_a_violation() -> None:
    """The simulator's monitor notices datagrams that cannot be decoded."""
    fault = "corrupt=0.5,dir=tx,kind=multicast"
    assert "decode" in sim.run({"fault": fault})["violation"]


def test_a_run_that_is_too_long_is_a_violation() -> None:
    """A run that exceeds its limit of virtual time ends with a violation."""
    result = sim.run({"delayed_rank": 1, "delay_ns": 900 * MS, "limit_ns": 100 * MS})
    assert "in time" in result["violation"]


def test_impossible_specs_are_refused() -> None:
    """A spec that makes no sense for 4 ranks on one switch is a ConfigError."""
    of_a_host, of_a_leaf = 2, 3
    with pytest.raises(ConfigError):
        sim.run({"nranks": 0})
    with pytest.raises(ConfigError):
        sim.run({"nswitches": 5})
    with pytest.raises(ConfigError):
        sim.run({"fault": "nonsense"})
    with pytest.raises(ConfigError):
        sim.run({"fault": "x" * 1000})
    with pytest.raises(ConfigError):
        sim.run({"link_mbits": -1})
    with pytest.raises(ConfigError):
        sim.run({"outage": of_a_host, "outage_place": 4})
    with pytest.raises(ConfigError):
        sim.run({"outage": of_a_leaf, "outage_place": 1})


# ---- the command -------------------------------------------------------------


def test_command_reports() -> None:
    """The command prints that every property held, and a line for each link."""
    done = command(
        "--ranks 5 --bytes 64K --chains 2 --subgroups 2 --repair neighbour "
        "--loss 0.01 --seed 3"
    )
    assert done.returncode == 0, done.stderr
    assert "every property held" in done.stdout
    assert "rank 4 down" in done.stdout


def test_command_json_is_complete() -> None:
    """With --json the command prints the whole spec and the whole result."""
    done = command("--ranks 3 --bytes 10000 --loss 0.5 --loss-period 4 --seed 9 --json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["spec"]["loss_ppm"] == 500_000
    assert printed["spec"]["loss_period"] == 4
    assert len(printed["result"]["ranks"]) == 3
    assert len(printed["result"]["links"]) == 6
    assert printed["result"]["violation"] == ""
