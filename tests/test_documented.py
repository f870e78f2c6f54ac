# SPDX-License-Identifier: BSD-3-Clause
"""The documents are right: examples, commands, links, the API and its types."""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support import BIN, ROOT, mpirun, run, run_unchecked, skip_or_fail

EXAMPLES = ROOT / "tests/documented.py"
REFERENCE = ROOT / "tests/reference.py"
TYPED = ROOT / "tests/typed.py"
MYPY = (sys.executable, "-m", "mypy", "--strict")
DOCUMENTS = ("README.md", "mpimcast/README.md")
MARKDOWN = [
    ROOT / "README.md",
    *(
        each
        for folder in ("mpimcast", "ffi", "tests", "bench", "slurm")
        for each in sorted((ROOT / folder).rglob("*.md"))
    ),
]
BY_MULTICAST = {"MPIMCAST_TRANSPORT": "udp", "MPIMCAST_MIN_BYTES": "0"}


@pytest.mark.parametrize("nranks", [1, 2])
def test_examples(nranks: int) -> None:
    """Each public name's docstring has examples, and they print what they show."""
    run([*mpirun(nranks), EXAMPLES], limit_s=60, **BY_MULTICAST)


def test_reference() -> None:
    """The guide's reference matches the sources; if not, run `make reference`."""
    if find_spec("docstring_parser") is None:
        skip_or_fail("docstring-parser is not installed: pip install 'mpimcast[dev]'")
    run([sys.executable, REFERENCE], limit_s=60)


@pytest.mark.parametrize("transport", ["auto", "udp"])
@pytest.mark.parametrize("document", DOCUMENTS)
def test_programs(document: str, transport: str, tmp_path: Path) -> None:
    """The Python blocks of a document, joined in order, form a program that runs.

    Each rank prints "udp: " once if the program is to multicast, and else never.
    """
    program = tmp_path / "program.py"
    program.write_text("".join(blocks(document, "python")))
    said = run([*mpirun(2), program], limit_s=60, MPIMCAST_TRANSPORT=transport)
    assert said.count("udp: ") == (2 if transport == "udp" else 0)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands(document: str, tmp_path: Path) -> None:
    """The commands that a document shows for one machine succeed.

    The test first saves the README's program as ``example.py``, which they run.
    """
    (tmp_path / "example.py").write_text(blocks("README.md", "python")[0])
    mpirun(1)  # sets the variables that let root launch
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    for block in blocks(document, "sh"):
        run(["sh", "-e", "-c", block], limit_s=60, cwd=tmp_path, PATH=path)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_cluster_commands(document: str) -> None:
    """The commands that a document shows for clusters are valid shell syntax."""
    for block in blocks(document, "bash"):
        run(["bash", "-n", "-c", block], limit_s=10)


def blocks(document: str, language: str) -> list[str]:
    """Return a document's code blocks in one language."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found
    return found


def test_links() -> None:
    """Every file and heading that a document links to exists."""
    wrong = []
    for document in MARKDOWN:
        text = document.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, heading = link.partition("#")
            if "://" in path:
                continue
            target = (document.parent / path).resolve() if path else document
            if not target.exists() or (heading and heading not in slugs(target)):
                wrong.append(f"{document.relative_to(ROOT)}: {link}")
    assert not wrong, "\n".join(wrong)


def slugs(document: Path) -> set[str]:
    """Return the anchors that a document's headings have in links."""
    headings = re.findall(
        r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {
        re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings
    }


@pytest.mark.timeout(200)
def test_types() -> None:
    """A program with all public names passes mypy's strict mode, and runs."""
    run([*MYPY, TYPED], limit_s=180)
    assert run([*mpirun(2), TYPED], limit_s=60).count("used") == 2


@pytest.mark.timeout(200)
def test_wrong_types(tmp_path: Path) -> None:
    """Mypy reports names that do not exist, and calls with wrong arguments."""
    program = tmp_path / "wrong.py"
    wrong_lines = (
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
    program.write_text(begin + "\n".join(wrong_lines) + "\n")
    status, said = run_unchecked([*MYPY, program], limit_s=180)
    assert status == 1
    refused = {line.split(":")[1] for line in said.splitlines() if ": error: " in line}
    first = begin.count("\n") + 1
    expected = {str(number) for number in range(first, first + len(wrong_lines))}
    assert refused == expected, said
