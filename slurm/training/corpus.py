# SPDX-License-Identifier: BSD-3-Clause
"""The text that is learnt: the sources of Python's standard library, or a file."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import torch

_BYTES_MAX = 16 << 20


def read(path: Path | None) -> torch.Tensor:
    """Return the bytes of a file, or of the standard library's sources."""
    if path is None:
        library = Path(sysconfig.get_paths()["stdlib"])
        content = b"".join(each.read_bytes() for each in sorted(library.glob("*.py")))
    else:
        content = path.read_bytes()
    return torch.frombuffer(bytearray(content[:_BYTES_MAX]), dtype=torch.uint8)


def batch(
    text: torch.Tensor, step: int, size: int, context: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `size` excerpts, and for each of their bytes the next one.

    They depend on the step alone, so a job that resumes goes on as if it had not ended.
    """
    if len(text) <= context + 1:
        raise ValueError(f"a text of {len(text)} bytes is too short for {context}")
    generator = torch.Generator().manual_seed(1000 + step)
    begins = torch.randint(len(text) - context - 1, (size,), generator=generator)
    excerpts = torch.stack([text[b : b + context + 1] for b in begins.tolist()]).long()
    return excerpts[:, :-1], excerpts[:, 1:]
