# SPDX-License-Identifier: BSD-3-Clause
"""Each check of a proxy or coder, taken away, is missed by the test a list names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from coders import CODERS
from links import LINKS
from mutations import MUTATIONS, Mutation
from parities import PARITIES
from support import ROOT, TIMED_OUT, require_tool, run, run_unchecked

# A program that hangs, for want of a check, has failed as well.
PROGRAM_LIMIT_S = 40

pytestmark = pytest.mark.long

ALL = (*MUTATIONS, *LINKS, *CODERS, *PARITIES)


class Copy:
    """A copy of the sources in another folder, with a build of its own."""

    def __init__(self, folder: Path) -> None:
        self._sources = folder / "ffi"
        self._build = folder / "build"
        shutil.copytree(ROOT / "ffi", self._sources)
        for tests in ("c", "firmware"):
            shutil.copytree(ROOT / "tests" / tests, folder / "tests" / tests)
        settings = {
            "CMAKE_MAKE_PROGRAM": require_tool("ninja"),
            "MPIMCAST_TESTS": "ON",
            "MPIMCAST_SANITIZE": "address,undefined",
        }
        given = [f"-D{name}={value}" for name, value in settings.items()]
        places = ["-G", "Ninja", "-S", self._sources, "-B", self._build]
        run([require_tool("cmake"), *places, *given], limit_s=60)

    def passes(self, program: str) -> bool:
        """Build a program, and return whether it succeeds; to build it must work."""
        build = [require_tool("cmake"), "--build", self._build, "-j", "2"]
        run([*build, "--target", program], limit_s=300)
        status, said = run_unchecked([self._build / program], limit_s=PROGRAM_LIMIT_S)
        assert status in (0, TIMED_OUT) or said
        return status == 0

    def survives(self, mutation: Mutation) -> bool:
        """Return whether the program passes with the edit, which is undone then."""
        path = self._sources / mutation.path
        before = edited = path.read_text()
        for old, new in ((mutation.old, mutation.new), *mutation.more):
            assert edited.count(old) == 1, (
                f"{mutation.path} has changed: {old!r} does not occur once"
            )
            edited = edited.replace(old, new)
        path.write_text(edited)
        try:
            return all(self.passes(mutation.program) for _ in range(mutation.runs))
        finally:
            path.write_text(before)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    """Yield a copy of the sources, in which all programs pass at the end, too."""
    made = Copy(tmp_path_factory.mktemp("mutations"))
    yield made
    for program in sorted({mutation.program for mutation in ALL}):
        assert made.passes(program), f"{program} fails even without a mutation"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.what)
def test_a_missing_check_is_noticed(mutation: Mutation, copy: Copy) -> None:
    """Without the check its test fails."""
    survives = copy.survives(mutation)
    print(f"{mutation.what}: {mutation.program} {'PASSES' if survives else 'fails'}")
    assert not survives, f"{mutation.program} does not miss: {mutation.what}"
