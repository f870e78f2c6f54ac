# SPDX-License-Identifier: BSD-3-Clause
"""Write the C source of ``mpimcast._core`` from the headers of the C API.

The declarations for cffi are read from the headers themselves, so the two cannot
differ. The arguments are ``OUTPUT HEADER...``; each header needs only those before it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import cffi

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_CONSTANT = re.compile(r"#\s*define\s+\w+\s+(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*\s*$")


def declarations(header: str) -> str:
    """Return the part of a header that cffi understands.

    Comments are removed, and the preprocessor's lines except definitions of integers.
    """
    lines = _COMMENT.sub(" ", header.replace("\\\n", " ")).splitlines()
    return "\n".join(
        line.rstrip()
        for line in lines
        if line.strip() and (not line.lstrip().startswith("#") or _CONSTANT.match(line))
    )


def main(output: str, *headers: str) -> None:
    """Write the module that wraps `headers`, found as ``mpimcast/NAME``."""
    ffi = cffi.FFI()
    for header in headers:
        ffi.cdef(declarations(Path(header).read_text(encoding="utf-8")))
    includes = (f"#include <mpimcast/{Path(header).name}>\n" for header in headers)
    ffi.set_source("mpimcast._core", "".join(includes))
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
