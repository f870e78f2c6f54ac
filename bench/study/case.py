# SPDX-License-Identifier: BSD-3-Clause
"""The cases of the scale study, their results, and the chapters about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from bench.page.plot import Picture

# A case yields integers alone, so that every machine gets the same.
Numbers = dict[str, int]
# The numbers of a question's cases, by their names.
Results = Mapping[str, Numbers]


class Case(NamedTuple):
    """One measurement.

    Attributes
    ----------
    name
        Its name among the cases of its question.
    arguments
        The arguments with which its question calls `measure`.
    quick
        Whether it takes a moment only, so that a test can repeat it.
    """

    name: str
    arguments: tuple[object, ...]
    quick: bool = False


class Table(NamedTuple):
    """A table whose cells are words, under a caption that says what they mean."""

    caption: str
    heads: list[str]
    rows: list[list[str]]


class Chapter(NamedTuple):
    """The part of the page that answers one question."""

    title: str
    paragraphs: list[str]
    tables: list[Table]
    pictures: list[Picture]


class Question(Protocol):
    """A module that answers one question of the study."""

    @staticmethod
    def cases() -> Iterator[Case]:
        """Yield its cases."""

    @staticmethod
    def measure(*arguments: object) -> Numbers:
        """Measure one case."""

    @staticmethod
    def chapter(results: Results, folder: Path) -> Chapter:
        """Return the chapter about the results, with pictures in a folder."""
