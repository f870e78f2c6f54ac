# SPDX-License-Identifier: BSD-3-Clause
"""The doctor's conclusions from its observations: blame, covers, verdicts, tables."""

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
    """A cover touches every pair, and no smaller set of nodes does."""

    def covers(nodes: Sequence[str]) -> bool:
        return all(one in nodes or two in nodes for one, two in pairs)

    found = smallest_cover(pairs)
    assert covers(list(found))
    names = sorted({name for pair in pairs for name in pair})
    fewer = itertools.combinations(names, max(len(found) - 1, 0))
    assert not found or not any(covers(nodes) for nodes in fewer)


def test_cover_of_many() -> None:
    """Stars among hundreds of nodes are found at once."""
    names = [f"n{number}" for number in range(500)]
    bad = {"n7", "n77", "n300"}
    assert smallest_cover((b, n) for b in sorted(bad) for n in names if n != b) == bad


def test_hears_nothing() -> None:
    """A node that hears no other node is to blame alone."""
    loss = {(one, two): 1.0 if two == "n3" else 0.0 for one, two in PAIRS}
    (fault,) = find_faults(loss)
    assert fault.node == "n3"
    assert fault.silent
    assert fault.words("multicast") == "it receives none of the multicast from others"


def test_is_not_heard() -> None:
    """A node that no other node hears is to blame alone."""
    loss = {(one, two): 1.0 if one == "n3" else 0.0 for one, two in PAIRS}
    (fault,) = find_faults(loss)
    assert fault.words("multicast") == "others receive none of its multicast"


def test_pair() -> None:
    """Of a single lossy pair one node is blamed, and its message names the other."""
    loss = dict.fromkeys(PAIRS, 0.0) | {("n1", "n3"): 0.25}
    (fault,) = find_faults(loss)
    assert fault.node == "n3"
    assert not fault.silent
    assert fault.words("unicast") == "it loses 25 % of the unicast from n1"


def test_two_nodes() -> None:
    """Of two nodes the message says that either may be to blame."""
    (fault,) = find_faults({("n0", "n1"): 0.0, ("n1", "n0"): 1.0})
    assert "two nodes do not show which" in fault.words("multicast")


def test_within_a_node() -> None:
    """Ranks of one node that do not hear each other are that node's fault."""
    lost = {(0, 1): 1.0, (1, 0): 1.0, (0, 2): 0.0, (2, 0): 0.0, (1, 2): 0.0}
    (fault,) = find_faults(by_node(lost, ["n0", "n0", "n1"]))
    assert fault.node == "n0"
    assert fault.words("multicast").startswith("it receives none of its own multicast")


def test_little_loss() -> None:
    """Loss of 3 %, as healthy networks have, is no fault."""
    assert find_faults(dict.fromkeys(PAIRS, 0.03)) == []


@settings(max_examples=50)
@given(
    st.integers(2, 20).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=4))
    )
)
def test_isolate(case: tuple[int, set[int]]) -> None:
    """Ranks with which no team can be opened are found by bisection."""
    nranks, bad = case

    def opens(parts: Sequence[tuple[int, ...]]) -> list[bool]:
        return [len(part) == 1 or not bad & set(part) for part in parts]

    assume(nranks - len(bad) > 1)
    well = isolate(opens, tuple(range(nranks)))
    assert set(well) == set(range(nranks)) - bad


# ---- how it was started ------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "by", "size", "rank"),
    [
        ({}, "", 1, 0),
        ({"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"}, "srun", 4, 3),
        # In a batch script, not started by srun.
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, "", 1, 0),
        # srun --mpi=pmi2.
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
        # Started by mpirun, whose daemon was started by srun.
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
def test_start(environment: dict[str, str], by: str, size: int, rank: int) -> None:
    """A launcher's variables are told apart from those of its own launcher."""
    assert find_start(environment) == (by, size, rank)


def test_alone_in_a_job() -> None:
    """A batch script's own process is not taken for the whole job."""
    alone = find_start({"SLURM_NTASKS": "4"})
    (finding,) = launch.check_alone(alone, {"SLURM_NTASKS": "4"})
    assert "4 tasks" in finding.what
    assert finding.mend.startswith("srun ")
    assert list(launch.check_alone(alone, {})) == []


@pytest.mark.parametrize(
    ("told", "names"),
    [
        # Several nodes of Slurm on one host.
        ([("n1", "box"), ("n2", "box")], ["n1", "n2"]),
        # Ranks of two hosts that have the variables of one node.
        ([("n1", "box1"), ("n1", "box2")], ["box1", "box2"]),
        ([("n1", "box1"), ("n2", "box2"), ("n2", "box2")], ["n1", "n2", "n2"]),
    ],
)
def test_node_names(told: list[tuple[str, str]], names: list[str]) -> None:
    """Slurm's names of nodes are used unless the hosts contradict them."""
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
    """Each MPI library needs one type of PMI from srun."""
    assert mpi_type_wanted(library) == wanted


# ---- nodes ---------------------------------------------------------------------


def node(name: str, **other: Any) -> dict[str, Any]:
    """Return the facts of a healthy node, changed as given."""
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
        "interface": interface | other.pop("interface", {}),
        "rdma": {"reason": "none"},
        "memlock_bytes": None,
        "rmem_max_bytes": 4 << 20,
        "wmem_max_bytes": 4 << 20,
        "root": False,
        "cores": 8,
        "cpus": {"0": [0], "1": [1]},
        **other,
    }


def compared(**other: Any) -> list[Finding]:
    """Return the findings of three nodes, of which the second is changed as given."""
    nodes = [node("n0"), node("n1", **other), node("n2")]
    return list(compare(nodes, ttl=1))


def test_alike() -> None:
    """Equal nodes that lack nothing have no findings."""
    assert compared() == []


PORT = {"state": "active", "link_layer": "Ethernet", "mtu_bytes": 4096}


@pytest.mark.parametrize(
    ("other", "severity", "mend"),
    [
        ({"interface": {"mtu_bytes": 1500}}, "degraded", "mtu 9000"),
        ({"interface": {"mtu_bytes": 65000}}, "note", "mtu 9000"),
        ({"interface": {"subnet": "10.1.0.0/24"}}, "note", "MPIMCAST_TTL"),
        ({"interface": {"igmp": "V2"}}, "note", "eth0.force_igmp_version=3"),
        ({"rmem_max_bytes": 8 << 20}, "note", f"net.core.rmem_max={4 << 20}"),
        ({"cpus": {"0": [3], "1": [3]}}, "degraded", "--bind-to core"),
        ({"cores": 1, "cpus": {"0": [0], "1": [0]}}, "note", "fewer ranks"),
        ({"rdma": {"ports": [PORT]}}, "note", "ibv_devinfo"),
    ],
    ids=["mtu", "jumbo", "subnet", "igmp", "buffers", "bound", "crowded", "rdma"],
)
def test_odd_node(other: dict[str, Any], severity: str, mend: str) -> None:
    """The node that differs from the others is named, with its remedy."""
    (finding,) = compared(**other)
    assert finding.node == "n1"
    assert finding.severity == severity
    assert mend in finding.mend


def test_locked_memory() -> None:
    """On nodes with RDMA devices a low limit of locked memory is a finding."""
    rdma = {"ports": [PORT]}
    nodes = [
        node("n0", rdma=rdma),
        node("n1", rdma=rdma, memlock_bytes=65536),
        node("n2", rdma=rdma),
    ]
    (finding,) = compare(nodes, ttl=1)
    assert finding.node == "n1"
    assert "ulimit -l unlimited" in finding.mend


# ---- links ---------------------------------------------------------------------


def test_best() -> None:
    """A slow node does not make nodes slow that have fast links to others."""
    rates = {("a", "b"): 1.0, ("b", "c"): 9.0, ("c", "a"): 9.0, ("a", "c"): 1.0}
    ways = best(rates | {("b", "a"): 9.0, ("c", "b"): 9.0})
    assert [way for way, rate in ways.items() if rate < 5] == [Way("a", leaving=True)]


# ---- what is told ----------------------------------------------------------------


def report(*findings: Finding) -> Report:
    """Return a report on two nodes."""
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
    """The worst finding decides; the last line excludes nodes, but never all."""
    made = report(*findings)
    assert made.verdict == verdict
    assert made.exclude == exclude
    made.show(None)
    last = capsys.readouterr().out.rstrip().splitlines()[-1]
    assert last.startswith(f"sbatch -x {','.join(exclude)} " if exclude else verdict)


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    """The worst finding comes first, and brackets in a text are shown as they are."""
    report(NOTE, LOSSY).show(None)
    said = capsys.readouterr().out
    assert "2 ranks on 2 nodes" in said
    assert said.index("degraded: loses") < said.index("note: a [trifle]")
    assert "degraded (repair)" in said


def test_untested(capsys: pytest.CaptureFixture[str]) -> None:
    """A check is called fine only if it was made and has no finding."""
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
    """If every check was made, the last line is the verdict alone."""
    report(NOTE).show(None)
    assert capsys.readouterr().out.endswith("\nusable\n")
