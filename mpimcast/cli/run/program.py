# SPDX-License-Identifier: BSD-3-Clause
"""Runs a user's program as ``python`` itself would, with its own tracebacks."""

from __future__ import annotations

import builtins
import io
import linecache
import os
import runpy
import sys
from importlib.machinery import SOURCE_SUFFIXES, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

_IMPORTLIB = "<frozen importlib."


def why_unavailable(path: str) -> str:
    """Return, in Python's words, why a script cannot be read; "" if it can."""
    whole = Path(path).absolute()
    try:
        if not whole.is_dir():  # a folder with a __main__.py is also a program
            whole.open("rb").close()
    except OSError as error:
        return f"can't open file '{whole}': [Errno {error.errno}] {error.strerror}"
    return ""


def run(words: list[str]) -> None:
    """Run a program, with the rest of the words as its ``sys.argv``.

    Parameters
    ----------
    words
        A script, or ``-m`` and a module, or ``-c`` and code; then its arguments.
    """
    if Path(words[0]).suffix in SOURCE_SUFFIXES and Path(words[0]).is_file():
        _run_script(words)
        return
    if words[0] == "-c" and sys.version_info >= (3, 13):
        lines = words[1].splitlines(keepends=True)  # which Python's tracebacks show
        linecache.cache["<string>"] = len(words[1]), None, lines, "<string>"
    from mpi4py.run import run_command_line

    run_command_line(words)


def _run_script(words: list[str]) -> None:
    """Run a source file as module ``__main__``, which stays until the interpreter ends.

    Unlike runpy, and like Python, set an absolute ``__file__``.
    """
    # Tracebacks show the path, which Python leaves with its links and dots.
    path = os.path.join(os.getcwd(), words[0])  # noqa: PTH109, PTH118
    sys.argv[:] = words
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[0] = str(Path(path).resolve().parent)
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=path,
        __cached__=None,
        __builtins__=builtins,
        __loader__=SourceFileLoader("__main__", path),
    )
    sys.modules["__main__"] = main
    with io.open_code(path) as file:
        source = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)  # noqa: S102


# ---- tracebacks --------------------------------------------------------------


def own_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the program's first frame on.

    Return None if the program has no frame, as when it cannot be compiled.
    """
    runners = _runners()
    while traceback and traceback.tb_frame.f_code.co_filename in runners:
        traceback = traceback.tb_next
    rest = traceback
    while rest and rest.tb_frame.f_code.co_filename.startswith(_IMPORTLIB):
        rest = rest.tb_next
    return traceback if rest else None


def hide_runner() -> None:
    """Show uncaught exceptions without the frames above the program.

    The current hook, which may be the program's own, shows them.
    """
    show = sys.excepthook

    def show_own(
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType | None,
    ) -> None:
        own = own_traceback(traceback)
        show(kind, error.with_traceback(own), own)

    sys.excepthook = show_own


def _runners() -> set[str]:
    """Return the files whose frames lie above a program's own."""
    here = Path(__file__)
    ours = (here.with_name("command.py"), here.parents[2] / "__main__.py")
    theirs = sys.modules.get("mpi4py.run")
    return {
        *(__file__, *map(str, ours)),
        runpy.run_path.__code__.co_filename,
        str(getattr(theirs, "__file__", "")),
    }
