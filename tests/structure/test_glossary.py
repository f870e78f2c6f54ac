# SPDX-License-Identifier: BSD-3-Clause
"""The glossary explains each word once, and no file has a word that it bans."""

from __future__ import annotations

import re
from collections.abc import Iterator

from support import ROOT

GLOSSARY = ROOT / "ffi/GLOSSARY.md"
FOLDERS = ("mpimcast", "ffi", "tests", "bench", "slurm")
SUFFIXES = (".c", ".h", ".py", ".pyi", ".md", ".sh", ".toml")

# The glossary itself, which lists the refused words, and folders of data.
NOT_READ = ("ffi/GLOSSARY.md", "bench/results/", "tests/fuzz/corpus/")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of each row of the table under a heading of the glossary."""
    text = GLOSSARY.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def texts() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file that people read."""
    paths = [ROOT / "README.md", ROOT / "Makefile"]
    for folder in FOLDERS:
        paths += sorted((ROOT / folder).rglob("*"))
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in SUFFIXES and not name.startswith(NOT_READ):
            yield name, path.read_text()


def test_each_word_once() -> None:
    """Each term is explained in one row, and no term is also a refused word."""
    terms = [term for row in rows("Terms") for term in row[0].split(", ")]
    refused = [
        word for row in rows("Words that are not used") for word in row[0].split(", ")
    ]
    assert len(terms) > 40
    assert len(refused) > 10
    assert sorted(terms) == sorted(set(terms))
    assert not set(terms) & set(refused)


def test_refused_words() -> None:
    """No file has a refused word, not even as a part of a name between underscores."""
    refused = [
        word for row in rows("Words that are not used") for word in row[0].split(", ")
    ]
    pattern = re.compile(
        rf"(?<![A-Za-z])({'|'.join(refused)})(?![A-Za-z])", re.IGNORECASE
    )
    wrong = [
        f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {found[0]}"
        for name, text in texts()
        for found in pattern.finditer(text)
    ]
    assert not wrong, "\n".join(wrong)
