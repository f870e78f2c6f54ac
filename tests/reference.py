# SPDX-License-Identifier: BSD-3-Clause
"""Generate the reference in mpimcast/README.md from the package.

The reference stands between two comments of that file. ``make reference`` runs this
program with ``--write``, which writes it anew. Without that the program exits with
status 1 if the reference does not match the package, and prints the difference.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import docstring_parser
from documented import public
from mpi4py import MPI

import mpimcast
from mpimcast._settings.config import LOCAL
from mpimcast._settings.options import options
from mpimcast._settings.setting import shown
from mpimcast.cli import commands
from mpimcast.cli.info.counters import COUNTERS

GUIDE = Path(mpimcast.__file__).with_name("README.md")
BEGIN = (
    "<!-- What follows is made by `make reference`; change the sources instead. -->\n"
)
END = "<!-- The end of what is made. -->\n"

# What to print for defaults whose repr() is not what a program would write. The keys
# come from id(), since some defaults cannot be hashed.
CONSTANTS = {id(MPI.INFO_NULL): "MPI.INFO_NULL", id(float): "float"}


def reference() -> str:
    """Return the whole reference, in Markdown."""
    parts = ["\n## Reference\n"]
    parts += ["### API\n", *api()]
    parts += ["### Settings\n", *settings()]
    parts += ["### Counters\n", *counters()]
    parts += ["### Exit statuses\n", *statuses()]
    return "\n".join(parts) + "\n"


# ---- the API -----------------------------------------------------------------


def api() -> Iterator[str]:
    """Yield a section for each public name; methods follow their class."""
    yield (
        "`help(mpimcast.Intracomm.Allgather)` and so on show the same in Python, with\n"
        "examples that the tests run.\n"
    )
    objects = dict(public())
    for name in [*FIRST, *sorted(set(objects) - set(FIRST))]:
        if "." in name:  # a method, which its class lists
            continue
        value = objects[name]
        yield from entry(f"mpimcast.{name}", value, "####")
        if isinstance(value, type) and not issubclass(value, Exception):
            for method in methods(value):
                yield from entry(f"{name}.{method}", getattr(value, method), "#####")


# The names that most programs use come first, in this order; all others follow in
# alphabetical order.
FIRST = (
    *(
        "Intracomm",
        "empty",
        "is_shared",
        "Startall",
        "Request",
        "Prequest",
        "Explanation",
    ),
    *("Intercomm", "Error"),
)


def methods(kind: type) -> list[str]:
    """Return the names of the public methods that the package adds to a class."""
    bases = [each for each in kind.__mro__ if each.__module__.startswith("mpimcast.")]
    if kind is not mpimcast.Partial and mpimcast.Partial in bases:
        bases.remove(mpimcast.Partial)  # it has a section of its own
    names = dict.fromkeys(name for base in bases for name in vars(base))
    return [
        name
        for name in names
        if not name.startswith("_") and callable(getattr(kind, name))
    ]


def entry(name: str, value: object, heading: str) -> Iterator[str]:
    """Yield the parts of the section on one name, with a heading like ``####``."""
    parsed = docstring_parser.parse(
        inspect.getdoc(value) or "", style=docstring_parser.DocstringStyle.NUMPYDOC
    )
    if not parsed.short_description:
        raise SystemExit(f"{name} has no docstring")
    yield f"{heading} `{name}{signature(value)}`\n"
    if isinstance(value, type) and issubclass(value, mpimcast.Error):
        yield f"Derived from `{value.__base__.__name__}`.\n"
    yield plain(parsed.short_description) + "\n"
    for text in (parsed.long_description, notes(parsed)):
        if text:
            yield plain(text) + "\n"
    lines = list(items(parsed))
    if lines:
        yield "\n".join(lines) + "\n"


def items(parsed: docstring_parser.Docstring) -> Iterator[str]:
    """Yield a line for each parameter, attribute, result and error."""
    for each in parsed.params:
        names = ", ".join(f"`{name}`" for name in each.arg_name.split(", "))
        kind = f" ({plain(each.type_name)})" if each.type_name else ""
        yield f"- {names}{kind}: {plain(each.description or '', ' ')}"
    if parsed.returns is not None:
        kind = parsed.returns.type_name or ""
        yield f"- Returns `{kind}`: {plain(parsed.returns.description or '', ' ')}"
    for each in parsed.raises:
        kinds = "`, `".join((each.type_name or "").split(", "))
        yield f"- Raises `{kinds}`: {plain(each.description or '', ' ')}"


def notes(parsed: docstring_parser.Docstring) -> str:
    """Return the text of a docstring's "Notes" sections."""
    found = [each.description or "" for each in parsed.meta if each.args == ["notes"]]
    return "\n\n".join(found)


def signature(value: object) -> str:
    """Return a callable's parameters in brackets, or an empty text.

    Types are left out, since mpi4py's are long.
    """
    if isinstance(value, type) and value.__init__ is object.__init__:
        return ""
    if isinstance(value, type) and issubclass(value, NOT_CONSTRUCTED):
        return ""
    if not callable(value):
        return ""
    words = []
    for each in inspect.signature(value).parameters.values():
        if each.name in ("self", "cls"):
            continue
        word = str(each.replace(annotation=inspect.Parameter.empty))
        if each.default is not inspect.Parameter.empty:
            shown = CONSTANTS.get(id(each.default)) or repr(each.default)
            word = f"{each.name}={shown}"
        words.append(word)
    return f"({', '.join(words)})"


# Classes whose constructors are not shown, because programs do not call them.
NOT_CONSTRUCTED = (
    *(mpimcast.Error, mpimcast.Explanation, mpimcast.Intercomm),
    *(mpimcast.Prequest, mpimcast.Request, mpimcast.Blocks, mpimcast.Partial),
    *(mpimcast.HostedPrequest, mpimcast.HostedRequest),
)


def plain(text: str, join: str = "\n") -> str:
    """Convert a docstring's text to Markdown, with `join` where its lines end."""
    paragraphs = [join.join(each.split("\n")) for each in text.split("\n\n")]
    return re.sub(r"``([^`]+)``", r"`\1`", "\n\n".join(paragraphs))


# ---- tables ------------------------------------------------------------------


def settings() -> Iterator[str]:
    """Yield the table of settings."""
    yield (
        "Each setting is a variable `MPIMCAST_...`, and a keyword of `Intracomm` by\n"
        "its name in lower case, which wins. All ranks need the same value, except of\n"
        f"{', '.join(f'`{name.upper()}`' for name in sorted(LOCAL))}.\n"
    )
    rows = [
        (
            f"`{option.name.upper()}`",
            default(option.name, option.default),
            sentence(option.metadata["doc"]),
            option.metadata["values"].expected,
        )
        for option in options()
    ]
    yield table(("setting", "default", "meaning", "values"), rows)


def default(name: str, value: object) -> str:
    """Return a setting's default as a user would write it in a variable."""
    written = shown(name, value)
    if isinstance(value, bool):
        written = "on" if value else "off"
    if name == "eager_bytes":
        written = f"{int(str(value)) >> 10}K"
    if name == "node_bytes":
        written = f"{int(str(value)) >> 20}M"
    if isinstance(written, float):
        written = f"{written:g}"
    return f"`{written}`" if written != "" else ""


def sentence(text: str) -> str:
    """Return a text with a capital first letter and a full stop."""
    first = text.split(" ", 1)[0]
    begin = text[:1].upper() if first.isalpha() and first.islower() else text[:1]
    return f"{begin}{text[1:]}."


def counters() -> Iterator[str]:
    """Yield the table of counters."""
    yield (
        "The keys of `Intracomm.stats()`. Each counts what this rank did. Bytes of\n"
        "datagrams include mpimcast's header of 16 bytes, or 20 with `CHECKSUM=full`,\n"
        "but not the headers of UDP, IP and Ethernet.\n"
    )
    rows = [(f"`{name}`", *each) for name, each in COUNTERS.items()]
    yield table(("counter", "unit", "meaning"), rows)


def statuses() -> Iterator[str]:
    """Yield the table of exit statuses."""
    yield "Those of the batch jobs are in [slurm/README.md](../slurm/README.md).\n"
    rows = [
        (f"`{name}`" if index == 0 else "", str(code), sentence(what))
        for name, command in commands.COMMANDS.items()
        for index, (code, what) in enumerate(command.statuses.items())
    ]
    yield table(("command", "status", "meaning"), rows)


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n"
        for line in lines
    )


# ---- the file ----------------------------------------------------------------


def main() -> int:
    """Write the reference, or compare it; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--write", action="store_true", help="write it anew instead of comparing it"
    )
    options = parser.parse_args()
    text = GUIDE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{GUIDE} lacks the lines around the reference:\n{BEGIN}{END}")
    made = f"{before}{BEGIN}{reference()}{END}{after}"
    if options.write:
        GUIDE.write_text(made, encoding="utf-8")
        return 0
    lines = (each.splitlines(keepends=True) for each in (text, made))
    sys.stdout.writelines(difflib.unified_diff(*lines, "README.md", "the sources"))
    return int(text != made)


if __name__ == "__main__":
    sys.exit(main())
