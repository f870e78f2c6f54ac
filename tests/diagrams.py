# SPDX-License-Identifier: BSD-3-Clause
"""Draw the state diagrams in ffi/'s documents from the tables in the core's headers.

Each diagram follows a comment that names its table. ``make reference`` runs this with
``--write``, which draws them anew. Without that it exits with status 1 if a diagram
does not match its table, and prints the difference.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from pathlib import Path

FFI = Path(__file__).parents[1] / "ffi"
DOCUMENTS = (FFI / "PROTOCOL.md", FFI / "ARCHITECTURE.md")

# A comment in a document that names a table and its header, and the diagram after it.
DIAGRAM = re.compile(
    r"(<!-- (?P<table>MMC_\w+_TABLE) of (?P<header>\S+), drawn by `make reference`\. "
    r"-->\n)```mermaid\n.*?```\n",
    re.DOTALL,
)


def tables() -> dict[str, Path]:
    """Return the names of the core's tables of states, each with its header."""
    return {
        table: header
        for header in sorted((FFI / "core").rglob("*.h"))
        for table in re.findall(
            r"^/\* X\(state, event, next state\) \*/\n#define (MMC_\w+_TABLE)",
            header.read_text(),
            re.MULTILINE,
        )
    }


def rows(table: str, header: Path) -> list[tuple[str, str, str]]:
    """Return the rows of a table, each a state, an event and the next state."""
    (text,) = re.findall(
        rf"#define {table}\(X\)(.*?[^\\])$",
        header.read_text(),
        re.DOTALL | re.MULTILINE,
    )
    return re.findall(r"X\((\w+), (\w+), (\w+)\)", text)


def initial(table: str, header: Path) -> str:
    """Return the state that a table begins in: the first of its enumeration."""
    prefix = table.removesuffix("TABLE")
    states = {state for state, _, _ in rows(table, header)}
    for names in re.findall(
        r"^enum \w+ \{(.*?)^\}", header.read_text(), re.DOTALL | re.MULTILINE
    ):
        found = re.findall(rf"^\t{prefix}(\w+)", names, re.MULTILINE)
        if found and found[0] in states:
            return str(found[0])
    raise LookupError(f"{header}: no enumeration has the states of {table}")


def draw(table: str, header: Path) -> str:
    """Return the diagram of a table, as a block of Mermaid in Markdown."""
    arrows = [
        f"    {state} --> {end}: {event}" for state, event, end in rows(table, header)
    ]
    begin = f"    [*] --> {initial(table, header)}"
    return "\n".join(["```mermaid", "stateDiagram-v2", begin, *arrows, "```\n"])


def drawn(text: str) -> str:
    """Return the text of a document with each diagram drawn anew."""
    return DIAGRAM.sub(
        lambda found: found[1] + draw(found["table"], FFI / found["header"]), text
    )


def main() -> int:
    """Check the diagrams, or draw them anew; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--write", action="store_true", help="draw them anew instead of comparing them"
    )
    write = parser.parse_args().write
    stale = False
    for document in DOCUMENTS:
        old = document.read_text()
        new = drawn(old)
        stale |= old != new
        if write:
            document.write_text(new)
            continue
        lines = (text.splitlines(keepends=True) for text in (old, new))
        sys.stdout.writelines(difflib.unified_diff(*lines, "is", "should be"))
    return int(stale and not write)


if __name__ == "__main__":
    sys.exit(main())
