# SPDX-License-Identifier: BSD-3-Clause
"""MPI libraries say in two ways whether they are aware of devices."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import support

# As Open MPI and its like answer for CUDA and for HIP, and as MPICH does for both.
OPEN_MPI = """
int MPIX_Query_cuda_support(void) { return 1; }
int MPIX_Query_rocm_support(void) { return 0; }
"""
MPICH = """
int MPIX_GPU_query_support(int type, int *is_supported)
{
	*is_supported = type == 2; /* MPIX_GPU_SUPPORT_HIP */
	return 0;
}
"""
ASK = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
from mpimcast._mpi.awareness import is_aware_of
print(is_aware_of("CUDA"), is_aware_of("HIP"), is_aware_of("Level Zero"))
"""


@pytest.mark.parametrize(
    ("source", "answers"),
    [(OPEN_MPI, "True False False"), (MPICH, "False True False")],
    ids=["Open MPI", "MPICH"],
)
def test_answers(tmp_path: Path, source: str, answers: str) -> None:
    """What a library says of a kind of devices is believed."""
    text, made = tmp_path / "library.c", tmp_path / "library.so"
    text.write_text(source)
    compiler = support.require_tool("gcc")
    support.run([compiler, "-shared", "-fPIC", "-o", made, text], limit_s=60)
    said = support.run([sys.executable, "-c", ASK, made], limit_s=60)
    assert said.split("\n")[0] == answers
