# SPDX-License-Identifier: BSD-3-Clause
"""The page of the scale study."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.study.case import Chapter

_HEAD = """# The scale study

The engine that ships, on simulated fabrics. `python -m bench.scale` repeats it,
`--check` proves that every number is the same on your machine; `results.json` has them
all. Links have 100 Gbit/s and 300 ns unless a chapter says otherwise, queues of 1 MiB a
port, and hosts receive as fast as their link. Nothing here was measured on hardware.
"""


def write(folder: Path, chapters: Iterable[Chapter]) -> Path:
    """Write the page to a folder, and return its path."""
    parts = [_HEAD]
    for chapter in chapters:
        parts.append(f"## {chapter.title}\n")
        parts += [f"{text}\n" for text in chapter.paragraphs]
        for table in chapter.tables:
            parts.append(f"{table.caption}\n\n{_table(table.heads, table.rows)}")
        for picture in chapter.pictures:
            parts.append(f"![{picture.caption}]({picture.path.name})\n")
    path = folder / "README.md"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
