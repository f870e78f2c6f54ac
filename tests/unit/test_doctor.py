# SPDX-License-Identifier: BSD-3-Clause
"""The doctor's conclusions from its observations, and how it reports them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mpimcast.cli.doctor import launch
from mpimcast.cli.doctor.bandwidth import Way, best
from mpimcast.cli.doctor.blame import by_node, find_faults
from mpimcast.cli.doctor.cover import smallest_cover
from mpimcast.cli.doctor.finding import Finding
from mpimcast.cli.doctor.nodes import compare
from mpimcast.cli.doctor.report import Report
from mpimcast.cli.doctor.start import find_start, mpi_type_wanted
from mpimcast.cli.doctor.trial import isolate

NODES = ["n0", "n1", "n2", "n3", "n4"]
PAIRS = list(itertools.permutations(NODES, 2))


# ---- who is to blame ---------------------------------------------------------


@given(st.lists(st.tuples(*[st.sampled_from("abcdefgh")] * 2), max_size=16))
def test_cover(pairs: list[tuple[str, str]]) -> None:
    """A smallest cover has a node of every pair; no smaller set of nodes has one."""

    def covers(nodes: Sequence[str]) -> bool:
        return all(one in nodes or two in nodes for one, two in pairs)

    found = smallest_cover(pairs)
    assert covers(list(found))
    names = sorted({name for pair in pairs for name in pair})
    fewer = itertools.combinations(names, max(len(found) - 1, 0))
    assert not found or not any(covers(nodes) for nodes in fewer)


def test_cover_of_many() -> None:
    """Three nodes that have trouble with all 500 nodes are found quickly."""
    names = [f"n{number}" for number in range(500)]
    bad = {"n7", "n77", "n300"}
    pairs = ((each, name) for each in sorted(bad) for name in names if name != each)
    assert smallest_cover(pairs) == bad


def test_deaf_node() -> None:
    """If a node hears no other node, it alone is blamed."""
    loss = {(one, two): 1.0 if two == "n3" else 0.0 for one, two in PAIRS}
    (fault,) = find_faults(loss)
    assert fault.node == "n3"
    assert fault.silent
    assert fault.words("multicast") == "it receives none of the multicast from others"


def test_unheard_node() -> None:
    """If no other node hears a node, it alone is blamed."""
    loss = {(one, two): 1.0 if one == "n3" else 0.0 for one, two in PAIRS}
    (fault,) = find_faults(loss)
    assert fault.words("multicast") == "others receive none of its multicast"


def test_lossy_pair() -> None:
    """If a pair of nodes loses datagrams, one is blamed; its message names both."""
    loss = dict.fromkeys(PAIRS, 0.0) | {("n1", "n3"): 0.25}
    (fault,) = find_faults(loss)
    assert fault.node == "n3"
    assert not fault.silent
    assert fault.words("unicast") == "it loses 25 % of the unicast from n1"


def test_two_nodes() -> None:
    """If there are only two nodes, the message says that either may be to blame."""
    (fault,) = find_faults({("n0", "n1"): 0.0, ("n1", "n0"): 1.0})
    assert "two nodes do not show which" in fault.words("multicast")


def test_loss_within_a_node() -> None:
    """If ranks of one node do not hear each other, that node is blamed."""
    lost = {(0, 1): 1.0, (1, 0): 1.0, (0, 2): 0.0, (2, 0): 0.0, (1, 2): 0.0}
    (fault,) = find_faults(by_node(lost, ["n0", "n0", "n1"]))
    assert fault.node == "n0"
    assert fault.words("multicast").startswith("it receives none of its own multicast")


def test_little_loss() -> None:
    """No node is blamed for a loss of 3 %, which occurs on healthy networks too."""
    assert find_faults(dict.fromkeys(PAIRS, 0.03)) == []


@settings(max_examples=50)
@given(
    st.integers(2, 20).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=4))
    )
)
def test_isolate(case: tuple[int, set[int]]) -> None:
    """Bisection finds the ranks that prevent a team of several from being opened."""
    nranks, bad = case

    def can_open(parts: Sequence[tuple[int, ...]]) -> list[bool]:
        return [len(part) == 1 or not bad & set(part) for part in parts]

    assume(nranks - len(bad) > 1)
    good = isolate(can_open, tuple(range(nranks)))
    assert set(good) == set(range(nranks)) - bad


# ---- how the doctor was started ----------------------------------------------


@pytest.mark.parametrize(
    ("variables", "by", "size", "rank"),
    [
        ({}, "", 1, 0),
        ({"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"}, "srun", 4, 3),
        # A process that the batch script started itself, without srun.
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, "", 1, 0),
        # Started by srun --mpi=pmi2, which also sets the variables of PMI.
        (
            {
                "SLURM_STEP_NUM_TASKS": "4",
                "SLURM_PROCID": "3",
                "PMI_SIZE": "4",
                "PMI_RANK": "3",
            },
            "srun",
            4,
            3,
        ),
        # Started by mpirun or mpiexec, whose daemons were started by srun.
        (
            {
                "SLURM_STEP_NUM_TASKS": "2",
                "SLURM_PROCID": "0",
                "OMPI_COMM_WORLD_SIZE": "8",
                "OMPI_COMM_WORLD_RANK": "5",
            },
            "Open MPI's mpirun",
            8,
            5,
        ),
        (
            {
                "SLURM_STEP_NUM_TASKS": "2",
                "SLURM_PROCID": "1",
                "PMI_SIZE": "8",
                "PMI_RANK": "5",
            },
            "mpiexec",
            8,
            5,
        ),
        ({"PMI_SIZE": "many", "PMI_RANK": "0"}, "", 1, 0),
    ],
)
def test_start(variables: dict[str, str], by: str, size: int, rank: int) -> None:
    """Size and rank come from this process's launcher, not from the launcher's own."""
    assert find_start(variables) == (by, size, rank)


def test_single_process_of_a_larger_job() -> None:
    """A single process that a batch script starts without srun is a finding.

    The batch job has four tasks; with srun the MPI job would have four ranks.
    """
    start = find_start({"SLURM_NTASKS": "4"})
    (finding,) = launch.check_alone(start, {"SLURM_NTASKS": "4"})
    assert "4 tasks" in finding.what
    assert finding.mend.startswith("srun ")
    assert list(launch.check_alone(start, {})) == []


@pytest.mark.parametrize(
    ("told", "names"),
    [
        # Slurm emulates several nodes on one host.
        ([("n1", "box"), ("n2", "box")], ["n1", "n2"]),
        # Ranks on two hosts were given the variables of one node.
        ([("n1", "box1"), ("n1", "box2")], ["box1", "box2"]),
        ([("n1", "box1"), ("n2", "box2"), ("n2", "box2")], ["n1", "n2", "n2"]),
    ],
)
def test_node_names(told: list[tuple[str, str]], names: list[str]) -> None:
    """Nodes have Slurm's names, unless one of these names stands for several hosts."""
    facts = [{"node": node, "host": host} for node, host in told]
    assert launch.node_names(facts) == names


@pytest.mark.parametrize(
    ("library", "wanted"),
    [
        ("Open MPI v5.0.11", "pmix"),
        ("MPICH Version: 5.0.2", "pmi2"),
        ("MPI VERSION : CRAY MPICH version 8.1.29.18", "cray_shasta"),
    ],
)
def test_mpi_type(library: str, wanted: str) -> None:
    """Each MPI library has the type of PMI that srun must offer it with --mpi."""
    assert mpi_type_wanted(library) == wanted


# ---- nodes ---------------------------------------------------------------------


def node(name: str, **changes: Any) -> dict[str, Any]:
    """Return the facts of a healthy node, with these changes."""
    interface = {
        "name": "eth0",
        "address": "10.0.0.1",
        "subnet": "10.0.0.0/24",
        "mtu_bytes": 9000,
        "igmp": "V3",
    }
    return {
        "name": name,
        "ranks": [0, 1],
        "interface": interface | changes.pop("interface", {}),
        "rdma": {"reason": "none"},
        "memlock_bytes": None,
        "rmem_max_bytes": 4 << 20,
        "wmem_max_bytes": 4 << 20,
        "root": False,
        "cores": 8,
        "cpus": {"0": [0], "1": [1]},
        "erasure_codes": None,
        **changes,
    }


def compared(**changes: Any) -> list[Finding]:
    """Return the findings on three nodes, of which the second has these changes."""
    nodes = [node("n0"), node("n1", **changes), node("n2")]
    return list(compare(nodes, ttl=1))


def test_equal_nodes() -> None:
    """Equal nodes that lack nothing have no findings."""
    assert compared() == []


PORT = {"state": "active", "link_layer": "Ethernet", "mtu_bytes": 4096}
TABLES = {"codec": "tables", "reason": "libisal.so.2: no such file"}


@pytest.mark.parametrize(
    ("changes", "severity", "mend"),
    [
        ({"interface": {"mtu_bytes": 1500}}, "degraded", "mtu 9000"),
        ({"interface": {"mtu_bytes": 65000}}, "note", "mtu 9000"),
        ({"interface": {"subnet": "10.1.0.0/24"}}, "note", "MPIMCAST_TTL"),
        ({"interface": {"igmp": "V2"}}, "note", "eth0.force_igmp_version=3"),
        ({"rmem_max_bytes": 8 << 20}, "note", f"net.core.rmem_max={4 << 20}"),
        ({"cpus": {"0": [3], "1": [3]}}, "degraded", "--bind-to core"),
        ({"cores": 1, "cpus": {"0": [0], "1": [0]}}, "note", "fewer ranks"),
        ({"rdma": {"ports": [PORT]}}, "note", "ibv_devinfo"),
        ({"erasure_codes": TABLES}, "note", "on n1: apt install libisal2"),
    ],
    ids=[
        *("mtu", "jumbo", "subnet", "igmp", "buffers"),
        *("bound", "crowded", "rdma", "codes"),
    ],
)
def test_different_node(changes: dict[str, Any], severity: str, mend: str) -> None:
    """The finding names the node that differs from the others, and how to fix it."""
    (finding,) = compared(**changes)
    assert finding.node == "n1"
    assert finding.severity == severity
    assert mend in finding.mend


def test_locked_memory() -> None:
    """On a node with an RDMA device, a low limit of locked memory is a finding."""
    rdma = {"ports": [PORT]}
    nodes = [
        node("n0", rdma=rdma),
        node("n1", rdma=rdma, memlock_bytes=65536),
        node("n2", rdma=rdma),
    ]
    (finding,) = compare(nodes, ttl=1)
    assert finding.node == "n1"
    assert "ulimit -l unlimited" in finding.mend


def test_no_codec() -> None:
    """What all nodes lack is one finding, with the reason; what they have is none."""
    (finding,) = compare([node(each, erasure_codes=TABLES) for each in NODES], ttl=1)
    assert finding.node == ""
    assert TABLES["reason"] in finding.what
    assert "on every node: apt install libisal2" in finding.mend
    able = {"codec": "ISA-L", "reason": None}
    assert not [*compare([node(each, erasure_codes=able) for each in NODES], ttl=1)]


# ---- links ---------------------------------------------------------------------


def test_best_rates() -> None:
    """The rate of a node's link is its best rate to any other node, each way.

    So node "a", which sends slowly, does not make its receivers look slow.
    """
    slow, fast = 1.0, 9.0
    rates = {
        **dict.fromkeys([("a", "b"), ("a", "c")], slow),
        **dict.fromkeys([("b", "a"), ("b", "c"), ("c", "a"), ("c", "b")], fast),
    }
    slow_ways = [way for way, rate in best(rates).items() if rate == slow]
    assert slow_ways == [Way("a", leaving=True)]


# ---- the doctor's report -------------------------------------------------------


def report(*findings: Finding) -> Report:
    """Return a report on two nodes with these findings."""
    made = Report(0.0, ("launch", "multicast"), watched=False)
    made.nranks = 2
    made.nodes = [{"name": "n0", "ranks": [0]}, {"name": "n1", "ranks": [1]}]
    made.add(findings)
    return made


NOTE = Finding("n0", "nodes", "note", "a [trifle]", "")
LOSSY = Finding(
    "n1", "multicast", "degraded", "loses", "mend", "repair", leave_out=True
)
DEAD = Finding("n0", "control", "unusable", "is dead", "mend", leave_out=True)


@pytest.mark.parametrize(
    ("findings", "verdict", "exclude"),
    [
        ((), "usable", []),
        ((NOTE,), "usable", []),
        ((NOTE, LOSSY), "degraded", ["n1"]),
        ((LOSSY, DEAD), "unusable", []),
        ((DEAD, NOTE), "unusable", ["n0"]),
    ],
)
def test_verdict(
    findings: tuple[Finding, ...],
    verdict: str,
    exclude: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The worst finding decides; the last line excludes bad nodes, unless all are."""
    made = report(*findings)
    assert made.verdict == verdict
    assert made.exclude == exclude
    made.show(None)
    last = capsys.readouterr().out.rstrip().splitlines()[-1]
    assert last.startswith(f"sbatch -x {','.join(exclude)} " if exclude else verdict)


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    """The table has the worst finding first, and shows brackets as they are.

    Rich, which prints the table, would otherwise take words in brackets for markup.
    """
    report(NOTE, LOSSY).show(None)
    said = capsys.readouterr().out
    assert "2 ranks on 2 nodes" in said
    assert said.index("degraded: loses") < said.index("note: a [trifle]")
    assert "degraded (repair)" in said


def test_untested(capsys: pytest.CaptureFixture[str]) -> None:
    """Only checks that were made and have no findings are reported as in order.

    Checks that were not made are listed, each with the first reason that was given.
    """
    made = Report(0.0, ("launch", "nodes", "multicast", "reads"), watched=False)
    made.nranks, made.nodes = 1, [{"name": "n0", "ranks": [0]}]
    made.skip(["multicast", "control", "reads"], "one rank")
    made.skip(["multicast"], "another reason")
    made.add([NOTE])
    assert made.document()["untested"] == {"multicast": "one rank", "reads": "one rank"}
    made.show(None)
    said = capsys.readouterr().out
    (fine,) = (line for line in said.splitlines() if "nothing is wrong" in line)
    (untested,) = (line for line in said.splitlines() if "not tested" in line)
    assert "launch" in fine
    assert not any(name in fine for name in ("nodes", "multicast", "reads"))
    assert "multicast, reads" in untested
    assert "not tested: one rank" in untested
    assert said.rstrip().endswith("usable, as far as one rank can tell")


def test_all_tested(capsys: pytest.CaptureFixture[str]) -> None:
    """If every check was made, the last line is only the verdict."""
    report(NOTE).show(None)
    assert capsys.readouterr().out.endswith("\nusable\n")
