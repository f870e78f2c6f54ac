# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast run``: unmodified mpi4py programs on our communicators."""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from mpimcast._support.spelling import suggestion
from mpimcast.cli.commands import statuses
from mpimcast.cli.run import program
from mpimcast.cli.run.imports import after_import

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast.cli.run.summary import Summary

_USAGE = """\
usage: python -m mpimcast run [--summary] SCRIPT [ARGUMENT ...]
   or: python -m mpimcast run [--summary] -m MODULE [ARGUMENT ...]
   or: python -m mpimcast run [--summary] -c CODE [ARGUMENT ...]
   or: python -m mpimcast run [--summary] - [ARGUMENT ...]    (from standard input)

Runs a program as `python -m mpi4py` does: an exception that nobody catches aborts
the job. MPI.COMM_WORLD, MPI.COMM_SELF and all communicators derived from them are
then mpimcast.Intracomm. MPI is initialised when the program imports it, with the
settings that `mpi4py.rc` has at that moment. All ranks of a job must run under it.

  --summary   at the end, print on standard error which collectives were called,
              what carried them and why, how long they took, and the bytes saved
"""

_KINDS = ("-m", "-c")
_STANDARD_INPUT = "-"


def main(argv: list[str]) -> int:
    """Run the program that `argv` names; it sees the rest as ``sys.argv``."""
    if argv in (["-h"], ["--help"]):
        print(f"{_USAGE}\n{textwrap.fill(statuses('run'), 80)}")
        return 0
    wants_summary = argv[:1] == ["--summary"]
    words = argv[1:] if wants_summary else argv
    if complaint := _complaint(words):
        print(complaint, end="", file=sys.stderr)
        return 2
    from mpi4py.run import set_abort_status

    summaries: list[Summary] = []

    def prepare() -> None:
        try:
            replace_world()
            if wants_summary:
                _after_init(lambda: summaries.append(_begin_summary()))
        except BaseException:
            # Now, since a module whose import fails is not found later.
            set_abort_status(1)
            raise

    try:
        after_import("mpi4py.MPI", prepare)
        program.run(words)
    except BaseException as ending:
        known = isinstance(ending, SystemExit | KeyboardInterrupt)
        set_abort_status(ending if known else 1)
        for summary in summaries:
            summary.alone = _is_failure(ending)
        if _was_not_found(ending):
            # Like Python, print its words for this without a traceback.
            print(f"{sys.executable}: {ending}", file=sys.stderr)
            return 1
        program.hide_runner()
        raise
    return 0


def _begin_summary() -> Summary:
    """Start counting; the summary is printed at the end."""
    from mpimcast.cli.run.summary import Summary

    return Summary()


def _is_failure(ending: BaseException) -> bool:
    """Return whether an exception ends the program with an error."""
    return not (isinstance(ending, SystemExit) and ending.code in (None, 0))


def _complaint(words: list[str]) -> str:
    """Return why there is nothing to run; "" if there is something."""
    option = words[0] if words and words[0].startswith("-") else ""
    if not words or (option in _KINDS and len(words) == 1):
        return _USAGE
    if option and option not in (*_KINDS, _STANDARD_INPUT):
        hint = suggestion(option, (*_KINDS, "--summary", "--help"))
        said = f"mpimcast run: there is no option {option!r}"
        return f"{_USAGE}\n{said}; {hint}\n" if hint else f"{_USAGE}\n{said}\n"
    why = "" if option else program.why_unavailable(words[0])
    return f"mpimcast run: {why}\n" if why else ""


def _was_not_found(ending: BaseException) -> bool:
    """Return whether there is no module to run: no line of it was reached."""
    found = program.own_traceback(ending.__traceback__)
    return isinstance(ending, ImportError) and found is None


def replace_world() -> None:
    """Replace ``MPI.COMM_WORLD`` and ``MPI.COMM_SELF`` by handles of mpimcast.

    Also wrap the communicators that extension modules make by mpi4py's C API. Before
    MPI is initialised no communicator can be made; ``MPI.Init`` then replaces the
    constants.
    """
    from mpi4py import MPI

    from mpimcast._session import attributes, pickling
    from mpimcast._session.handle import replace_constant, wrap
    from mpimcast.cli.run import capi
    from mpimcast.comm import Intracomm

    def replace_constants() -> None:
        for name in ("COMM_WORLD", "COMM_SELF"):
            replace_constant(name, Intracomm(getattr(MPI, name)))
        state = attributes.attached(MPI.COMM_WORLD)
        assert state is not None  # noqa: S101 -- the handle has just made it
        state.join_at_end()

    _after_init(replace_constants)
    capi.wrap_communicators(lambda comm: wrap(Intracomm, comm))
    pickling.keep_constants()
    replace_startall()


def _after_init(action: Callable[[], None]) -> None:
    """Call `action` once MPI is initialised: now, or after ``Init`` or ``Init_thread``.

    A program that sets ``mpi4py.rc.initialize = False`` calls one of them itself.
    """
    from mpi4py import MPI

    if MPI.Is_initialized():
        action()
        return

    def extended(init: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(init)
        def initialise(*arguments: Any, **keywords: Any) -> Any:
            level = init(*arguments, **keywords)
            action()
            return level

        return initialise

    MPI.Init = extended(MPI.Init)
    MPI.Init_thread = extended(MPI.Init_thread)


def replace_startall() -> None:
    """Make ``MPI.Prequest.Startall`` start mpimcast's requests beside the library's.

    The class itself stays, since programs compare it with the types of their requests.
    It is a built-in type, whose attributes are in a dictionary that Python does not
    show; if there is none, the program has to call ``mpimcast.Startall``.
    """
    from mpi4py import MPI

    from mpimcast.requests import Startall

    for attributes in gc.get_referents(vars(MPI.Prequest)):
        if isinstance(attributes, dict) and "Startall" in attributes:
            attributes["Startall"] = staticmethod(Startall)
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(MPI.Prequest))
