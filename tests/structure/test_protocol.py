# SPDX-License-Identifier: BSD-3-Clause
"""The diagrams and tables of ffi/'s documents match the core."""

from __future__ import annotations

import re
from itertools import pairwise

import diagrams
from diagrams import DIAGRAM, DOCUMENTS, FFI, tables
from support import ROOT

PROTOCOL = (ROOT / "ffi/PROTOCOL.md").read_text()
MESSAGE_H = (ROOT / "ffi/core/wire/message.h").read_text()
MESSAGE_C = (ROOT / "ffi/core/wire/message.c").read_text()

# A field's name in PROTOCOL.md begins with the first word of its name in message.c.
# These are the exceptions: the name in message.c, and how the other name begins.
CALLED = {
    "SIGNATURE_MIN": "signature, least",
    "SIGNATURE_MAX": "signature, greatest",
    "SRTT_US": "round trip",
    "NITEMS": "items",
}


def only_match(pattern: str, text: str) -> str:
    """Return the match of a pattern's group; the text must have exactly one."""
    (found,) = re.findall(pattern, text, re.DOTALL | re.MULTILINE)
    return str(found)


def message_table() -> list[tuple[int, str]]:
    """Return the offset and name of each field in PROTOCOL.md's message table."""
    table = only_match(r"^A control message .*?\n\n(\|.*?)\n\n", PROTOCOL)
    return [
        (int(offset), name)
        for offset, name in re.findall(r"^\| (\d+) \| ([^|]+) \|", table, re.MULTILINE)
    ]


def test_diagrams() -> None:
    """Each table of states in the core has one diagram, which has the table's rows."""
    drawn = []
    for document in DOCUMENTS:
        text = document.read_text()
        drawn += [(found["table"], found["header"]) for found in DIAGRAM.finditer(text)]
        assert diagrams.drawn(text) == text, "run `make reference`"
    assert sorted(drawn) == sorted(
        (table, header.relative_to(FFI).as_posix())
        for table, header in tables().items()
    )


def test_states() -> None:
    """Each name in a table is enumerated, and its rows are in the order of reach.

    A row's state is the initial state, or the next state of a row above.
    """
    for table, header in tables().items():
        names = set(re.findall(r"^\tMMC_(\w+)", header.read_text(), re.MULTILINE))
        prefix = table.removeprefix("MMC_").removesuffix("TABLE")
        reached = {diagrams.initial(table, header)}
        for state, event, following in diagrams.rows(table, header):
            assert {prefix + word for word in (state, event, following)} <= names
            assert state in reached, f"{table}: {state} comes before it is reached"
            reached.add(following)


def test_message_offsets() -> None:
    """The fields of a control message have the offsets that message.c has."""
    text = only_match(r"^enum \{(.*?)^\}", MESSAGE_C)
    fields = re.findall(r"^\t(\w+) = (\w+),", text, re.MULTILINE)
    assert len(fields) == len(text.splitlines()) - 1
    fixed_bytes = only_match(r"^#define MMC_MESSAGE_BYTES (\d+)$", MESSAGE_H)
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
    """PROTOCOL.md gives the kinds of messages the enumeration's numbers."""
    text = only_match(r"^Kinds: (.*?)\. ", PROTOCOL)
    numbered = re.findall(r"(\d+) (\w+)", text)
    kinds = only_match(r"^enum mmc_message_kind \{(.*?)^\}", MESSAGE_H)
    names = re.findall(r"^\tMMC_MESSAGE_(\w+)\b", kinds, re.MULTILINE)
    assert names[-1] == "COUNT"
    assert [(int(number), name) for number, name in numbered] == list(
        enumerate(names[:-1])
    )
