# SPDX-License-Identifier: BSD-3-Clause
"""What is public is typed, and has examples that hold."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support import ROOT, absent, mpirun, run, run_unchecked

EXAMPLES = ROOT / "tests/documented.py"
REFERENCE = ROOT / "tests/reference.py"
TYPED = ROOT / "tests/typed.py"
MYPY = (sys.executable, "-m", "mypy", "--strict")
OURS = {"MPIMCAST_TRANSPORT": "udp", "MPIMCAST_MIN_BYTES": "0"}


@pytest.mark.parametrize("nranks", [1, 2])
def test_examples(nranks: int) -> None:
    """Each public name's docstring has examples, which say what happens."""
    run([*mpirun(nranks), EXAMPLES], limit_s=60, **OURS)


def test_reference() -> None:
    """The guide's reference is that of the sources; else: make reference."""
    if find_spec("docstring_parser") is None:
        absent("docstring-parser is not installed: pip install 'mpimcast[dev]'")
    run([sys.executable, REFERENCE], limit_s=60)


def test_readme(tmp_path: Path) -> None:
    """What the README shows runs, one piece after the other."""
    pieces = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    assert pieces
    program = tmp_path / "readme.py"
    program.write_text("".join(pieces))
    said = run([*mpirun(2), program], limit_s=60, MPIMCAST_TRANSPORT="udp")
    assert said.count("udp: ") == 2


@pytest.mark.timeout(200)
def test_types() -> None:
    """A program that uses all of it passes a type checker's strict mode, and runs."""
    run([*MYPY, TYPED], limit_s=180)
    assert run([*mpirun(2), TYPED], limit_s=60).count("used") == 2


@pytest.mark.timeout(200)
def test_wrong_types(tmp_path: Path) -> None:
    """What is not there, or is called wrongly, does not pass."""
    program = tmp_path / "wrong.py"
    wrong = (
        "mpimcast.nonsense",
        "comm.Bcast()",
        'comm.Bcast(bytearray(1), root="0")',
        "comm.explain(1).nonsense",
        'comm.stats()["epochs"].nonsense',
        "mpimcast.Startall(1)",
    )
    begin = (
        "import mpimcast\nfrom mpi4py import MPI\n"
        "comm = mpimcast.Intracomm(MPI.COMM_WORLD)\n"
    )
    program.write_text(begin + "\n".join(wrong) + "\n")
    status, said = run_unchecked([*MYPY, program], limit_s=180)
    assert status == 1
    lines = {line.split(":")[1] for line in said.splitlines() if ": error: " in line}
    first = begin.count("\n") + 1
    assert lines == {str(number) for number in range(first, first + len(wrong))}, said
