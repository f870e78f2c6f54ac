# SPDX-License-Identifier: BSD-3-Clause
"""Importing mpimcast has no side effects."""

from __future__ import annotations

import sys

from support import run


def _python(code: str, **env: str) -> str:
    return run([sys.executable, "-c", code], limit_s=60, **env)


def test_import_leaves_mpi_alone() -> None:
    """Importing loads no MPI, C library, numpy or torch, and starts no thread."""
    code = (
        "import sys, threading, mpimcast; "
        "loaded = {'mpi4py.MPI', 'mpimcast._core', 'numpy', 'torch'} & {*sys.modules}; "
        "assert not loaded, loaded; "
        "assert threading.active_count() == 1"
    )
    assert not _python(code)


def test_settings_need_no_mpi() -> None:
    """Errors and settings work without MPI, even if variables are bad."""
    code = (
        "import sys, mpimcast; from mpimcast._settings.config import Config; "
        "mpimcast.ConfigError; Config.read({}, {}); "
        "assert 'mpi4py.MPI' not in sys.modules"
    )
    assert not _python(code, MPIMCAST_TRANSPORT="nonsense")


def test_public_names() -> None:
    """Every public name exists, and dir() lists no other."""
    code = (
        "import mpimcast; names = dir(mpimcast); "
        "assert names == sorted(mpimcast.__all__); "
        "[getattr(mpimcast, name) for name in names]; print(*names)"
    )
    public = (
        "Blocks ConfigError Error Explanation HostedPrequest HostedRequest Intercomm "
        "Intracomm Partial Prequest RankLeft Request Startall Stranger TimedOut "
        "TransportError __version__ empty is_shared"
    )
    assert _python(code).split() == public.split()
