# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI 4, as Debian and Ubuntu have it, below mpimcast."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from checkout import make_environment
from support import BIN, ROOT, require_tool, run, torch_variables

# What openmpi-bin needs, but for what Debian's Slurm needs as well.
PACKAGES = (
    *("openmpi-bin", "openmpi-common", "libopenmpi3", "libucx0"),
    *("libfabric1", "libpsm2-2", "libpsm-infinipath1"),
)
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# The library implements MPI 3.1, which has no persistent collectives.
LACKING = "not init and not test_thread_level and not below_min and not full_segment"
LIMIT_S = 240
pytestmark = pytest.mark.timeout(LIMIT_S + 60)


@pytest.fixture(scope="module")
def openmpi(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Unpack the library beside a Python, whose programs find it by these variables."""
    folder = tmp_path_factory.mktemp("debian")
    run([require_tool("apt-get"), "download", *PACKAGES], limit_s=120, cwd=folder)
    for package in folder.glob("*.deb"):
        run(["dpkg", "-x", package, folder / "root"], limit_s=60)
    programs = make_environment(folder / "venv", BIN / "python")
    (packages,) = (folder / "venv").glob("lib/*/site-packages")
    (ours,) = (ROOT / ".venv").glob("lib/*/site-packages")
    (packages / "ours.pth").write_text(f"import site; site.addsitedir({str(ours)!r})\n")
    (programs / "mpirun").symlink_to(folder / "root/usr/bin/orterun")
    libraries = folder / "root" / LIBRARIES
    return {
        "MPI4PY_LIBMPI": str(libraries / "libmpi.so.40"),
        "LD_LIBRARY_PATH": str(libraries),
        "OPAL_PREFIX": str(folder / "root/usr"),
        "OPAL_LIBDIR": str(libraries),
        "OMPI_MCA_mca_base_component_path": str(libraries / "openmpi/lib/openmpi3"),
        "OMPI_MCA_mca_base_component_show_load_errors": "0",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }


def test_mpi(openmpi: dict[str, str], tmp_path: Path, long: bool) -> None:
    """Collectives equal the library's."""
    launcher = "mpirun --oversubscribe --bind-to none --output-filename"
    pytest_command = "python -m pytest --with-mpi -p no:cacheprovider -q --timeout=60"
    run(
        [
            *(*launcher.split(), tmp_path / "said", "-n", "3", *pytest_command.split()),
            *("-k", LACKING, "tests/mpi" if long else "tests/mpi/test_allgatherv.py"),
        ],
        limit_s=LIMIT_S,
        **openmpi,
    )
    (said,) = (tmp_path / "said").glob("*/rank.0/stdout")
    assert " passed" in said.read_text().splitlines()[-1]
    assert "Open MPI v4" in said.read_text()


@pytest.mark.long
def test_torchrun(openmpi: dict[str, str]) -> None:
    """The library's launcher gives torchrun's processes their places."""
    said = run(
        [
            *("python", "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", "tests/training/torchrun_rank.py"),
        ],
        limit_s=LIMIT_S,
        **{**openmpi, **torch_variables(), "MPIMCAST_TRANSPORT": "udp"},
    )
    assert "rank 1 of 2: " in said
