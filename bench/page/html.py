# SPDX-License-Identifier: BSD-3-Clause
"""Write the page of a report: one HTML file that contains its pictures."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from bench.page.plot import Picture

TEMPLATE = Path(__file__).with_name("report.html")


def write(folder: Path, about: str, body: str) -> Path:
    """Write the page to a folder, and return its path.

    `about`, in plain text, says below the title what was measured; `body` is HTML.
    """
    page = Template(TEMPLATE.read_text(encoding="utf-8"))
    path = folder / "report.html"
    path.write_text(page.substitute(about=escape(about), body=body), encoding="utf-8")
    return path


def figure(picture: Picture) -> str:
    """Return a picture and its caption as HTML that contains the picture's data."""
    data = base64.b64encode(picture.path.read_bytes()).decode()
    caption = escape(picture.caption)
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>\n"
    )


def row(words: Sequence[str], *, ours: bool = False) -> str:
    """Return a row of a table, given the HTML of its cells.

    With `ours`, the row has mpimcast's results, and stands out.
    """
    cells = "".join(f"<td>{word}</td>" for word in words)
    return f'<tr class="{"ours" if ours else ""}">{cells}</tr>\n'


def group(title: str, ncolumns: int) -> str:
    """Return a row of a table with a heading, in plain text, for the rows below it."""
    return f'<tr class="group"><td colspan="{ncolumns}">{escape(title)}</td></tr>\n'


def table(heads: Sequence[str], rows: Sequence[str]) -> str:
    """Return a table, given the HTML of its columns' heads and of its rows."""
    head = "".join(f"<th>{each}</th>" for each in heads)
    return f"<table>\n<tr>{head}</tr>\n{''.join(rows)}</table>\n"
