# SPDX-License-Identifier: BSD-3-Clause
"""The state diagrams in ffi/PROTOCOL.md, drawn from the tables in the core's headers.

``make reference`` draws them anew, each after a comment that names its table. Without
an argument this program fails if one is stale, and prints the difference.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from pathlib import Path

FFI = Path(__file__).parents[1] / "ffi"
PROTOCOL = FFI / "PROTOCOL.md"

# A comment in PROTOCOL.md that names a table and its header, and the diagram after it.
DIAGRAM = re.compile(
    r"(<!-- (?P<table>MMC_\w+_TABLE) of (?P<header>\S+), drawn by `make reference`\. "
    r"-->\n)```mermaid\n.*?```\n",
    re.DOTALL,
)


def tables() -> dict[str, Path]:
    """Return the header of each table of states in the core."""
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
    """Return the rows of a table: state, event and next state."""
    (text,) = re.findall(
        rf"#define {table}\(X\)(.*?[^\\])$",
        header.read_text(),
        re.DOTALL | re.MULTILINE,
    )
    return re.findall(r"X\((\w+), (\w+), (\w+)\)", text)


def initial(table: str, header: Path) -> str:
    """Return the state that is the first of its enumeration."""
    prefix = table.removesuffix("TABLE")
    states = {state for state, _, _ in rows(table, header)}
    for names in re.findall(
        r"^enum \w+ \{(.*?)^\}", header.read_text(), re.DOTALL | re.MULTILINE
    ):
        first = re.findall(rf"^\t{prefix}(\w+)", names, re.MULTILINE)[:1]
        if set(first) <= states and first:
            return str(first[0])
    raise LookupError(f"{header}: no enumeration has the states of {table}")


def draw(table: str, header: Path) -> str:
    """Return the diagram of a table."""
    arrows = [
        f"    {state} --> {end}: {event}" for state, event, end in rows(table, header)
    ]
    begin = f"    [*] --> {initial(table, header)}"
    return "\n".join(["```mermaid", "stateDiagram-v2", begin, *arrows, "```\n"])


def drawn(text: str) -> str:
    """Return the text of PROTOCOL.md with each diagram drawn anew."""
    return DIAGRAM.sub(
        lambda found: found[1] + draw(found["table"], FFI / found["header"]), text
    )


def main() -> int:
    """Check the diagrams, or draw them anew."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="draw them anew")
    old = PROTOCOL.read_text()
    new = drawn(old)
    if parser.parse_args().write:
        PROTOCOL.write_text(new)
        return 0
    stale, fresh = (text.splitlines(keepends=True) for text in (old, new))
    sys.stdout.writelines(difflib.unified_diff(stale, fresh, "is", "should be"))
    return int(old != new)


if __name__ == "__main__":
    sys.exit(main())
