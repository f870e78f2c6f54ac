# SPDX-License-Identifier: BSD-3-Clause
"""The rooms above the core use its functions, but not the fields of its state.

The test compiles them with a copy of the core's headers in which all fields are
deprecated, and GCC reports each use.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support import ROOT, require_tool

FFI = ROOT / "ffi"
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wdeprecated-declarations")

# The rooms of the core that keep state; the others describe datagrams and plans.
STATEFUL = ("barrier", "flow", "operation", "repair")

# Structs that pass between the core and the rooms above; those rooms may use their
# fields.
VALUES = {"mmc_action", "mmc_actions", "mmc_mend", "mmc_op_config", "mmc_poison"}

# The engine's files that may use fields: for direct placement they predict from the
# core's state which chunks arrive.
PREDICTORS = {"destination.c", "placement.c", "predictor.c"}

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STRUCT = re.compile(r"^struct (mmc_\w+) \{$(.*?)^\};$", re.DOTALL | re.MULTILINE)
# Matches GCC's warning: the file and line, and the field.
WARNING = re.compile(r"^(ffi/\S+?:\d+):\d+: \S+ .(\w+). is deprecated", re.MULTILINE)


def deprecate(found: re.Match[str]) -> str:
    """Return a struct's definition with every field deprecated, unless in VALUES."""
    name, fields = found.groups()
    if name in VALUES:
        return found[0]
    fields = COMMENT.sub(" ", fields).replace(";", " __attribute__((deprecated));")
    return f"struct {name} {{{fields}}};"


@pytest.fixture(scope="module")
def deprecated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a copy of the core whose state has deprecated fields."""
    copy = tmp_path_factory.mktemp("deprecated")
    shutil.copytree(FFI / "core", copy / "core")
    for room in STATEFUL:
        for header in (copy / "core" / room).glob("*.h"):
            header.write_text(STRUCT.sub(deprecate, header.read_text()))
    return copy


def uses(deprecated: Path, *sources: Path) -> list[str]:
    """Return the place and the field of each use of a field of the core's state."""
    folders = (f"-I{deprecated}", "-Iffi", "-Iffi/include")
    command = [require_tool("gcc"), *FLAGS, *folders]
    done = subprocess.run(
        [*command, *(source.relative_to(ROOT) for source in sources)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    )
    return [f"{where}: {field}" for where, field in WARNING.findall(done.stderr)]


def test_values_exist() -> None:
    """Every struct of VALUES is defined in the core."""
    headers = [path.read_text() for path in (FFI / "core").rglob("*.h")]
    assert {name for text in headers for name, _ in STRUCT.findall(text)} >= VALUES


def test_uses_are_found(deprecated: Path) -> None:
    """The test finds the uses of fields in the core itself."""
    found = uses(deprecated, FFI / "core/operation/op.c", FFI / "core/repair/loss.c")
    assert {line.partition(":")[0] for line in found} == {
        "ffi/core/operation/op.c",
        "ffi/core/repair/loss.c",
    }


@pytest.mark.parametrize("room", ["engine", "engine/api", "engine/threads", "sim"])
def test_fields_are_not_used(deprecated: Path, room: str) -> None:
    """No file or header of a room above the core uses a field of the core's state."""
    sources = [
        path for path in sorted((FFI / room).glob("*.c")) if path.name not in PREDICTORS
    ]
    assert sources
    wrong = uses(deprecated, *sources)
    assert not wrong, "\n".join(wrong)
