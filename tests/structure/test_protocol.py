# SPDX-License-Identifier: BSD-3-Clause
"""The diagram and tables of PROTOCOL.md match the core."""

from __future__ import annotations

import re
from itertools import pairwise

from support import ROOT

PROTOCOL = (ROOT / "ffi/PROTOCOL.md").read_text()
OP = (ROOT / "ffi/core/operation/op.h").read_text()
MESSAGE_H = (ROOT / "ffi/core/wire/message.h").read_text()
MESSAGE_C = (ROOT / "ffi/core/wire/message.c").read_text()

# The table's names of fields that do not begin with message.c's first word.
CALLED = {
    "SIGNATURE_MIN": "signature, least",
    "SIGNATURE_MAX": "signature, greatest",
    "SRTT_US": "round trip",
    "NITEMS": "items",
}


def only(pattern: str, text: str) -> str:
    """Return the only match of a pattern's group."""
    (found,) = re.findall(pattern, text, re.DOTALL | re.MULTILINE)
    return str(found)


def message_table() -> list[tuple[int, str]]:
    """Return offset and name of each field in the control message's table."""
    table = only(r"^A control message .*?\n\n(\|.*?)\n\n", PROTOCOL)
    return [
        (int(offset), name)
        for offset, name in re.findall(r"^\| (\d+) \| ([^|]+) \|", table, re.MULTILINE)
    ]


def test_transitions() -> None:
    """The diagram's arrows are the rows of MMC_OP_TABLE."""
    diagram = only(r"```mermaid\nstateDiagram-v2\n(.*?)```", PROTOCOL)
    arrows = re.findall(r"^ +(\w+) --> (\w+): (\w+)$", diagram, re.MULTILINE)
    (begin,) = re.findall(r"^ +\[\*\] --> (\w+)$", diagram, re.MULTILINE)
    assert len(arrows) + 1 == len(diagram.splitlines())
    table = only(r"#define MMC_OP_TABLE\(X\)(.*?[^\\])$", OP)
    rows = re.findall(r"X\((\w+), (\w+), (\w+)\)", table)
    assert rows
    assert [(state, event, following) for state, following, event in arrows] == rows
    states = only(r"^enum mmc_op_state \{(.*?)^\}", OP)
    assert re.findall(r"^\tMMC_OP_(\w+)", states, re.MULTILINE)[0] == begin


def test_message_offsets() -> None:
    """The table's fields lie where message.c has them."""
    text = only(r"^enum \{(.*?)^\}", MESSAGE_C)
    fields = re.findall(r"^\t(\w+) = (\w+),", text, re.MULTILINE)
    assert len(fields) == len(text.splitlines()) - 1
    fixed_bytes = only(r"^#define MMC_MESSAGE_BYTES (\d+)$", MESSAGE_H)
    table = message_table()
    assert [offset for offset, _ in table] == [
        int(value.replace("MMC_MESSAGE_BYTES", fixed_bytes)) for _, value in fields
    ]
    for (_, called), (name, _) in zip(table, fields, strict=True):
        assert called.startswith(CALLED.get(name, name.split("_")[0].lower()))


def test_message_widths() -> None:
    """Each field of the table ends where the next one begins."""
    for (offset, name), (following, _) in pairwise(message_table()):
        assert offset + int(name.rpartition(" u")[2]) // 8 == following


def test_message_kinds() -> None:
    """The message kinds are numbered as in their enum."""
    text = only(r"^Kinds: (.*?)\. ", PROTOCOL)
    numbered = re.findall(r"(\d+) (\w+)", text)
    kinds = only(r"^enum mmc_message_kind \{(.*?)^\}", MESSAGE_H)
    names = re.findall(r"^\tMMC_MESSAGE_(\w+)\b", kinds, re.MULTILINE)
    assert names[-1] == "COUNT"
    assert [(int(number), name) for number, name in numbered] == list(
        enumerate(names[:-1])
    )
