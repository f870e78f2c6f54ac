# SPDX-License-Identifier: BSD-3-Clause
"""CPythons other than this one, from the archive of Ubuntu's packages.

The archive keeps every version for as long as a release is supported. It is a package
registry; other sources of Pythons are not.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from sdist import made_in_one_piece
from support import BUILD, require_tool, run, skip_or_fail

_ARCHIVE = "http://archive.ubuntu.com/ubuntu/pool/main/p"
_LIMIT_S = 600

# Ubuntu 22.04's binary runs with the libraries of Ubuntu and of Debian 12 and later.
OLDEST = "python3.10"
_BINARIES = {
    "python3.10/python3.10-minimal_3.10.4-3_amd64.deb": (
        "beb041e53740a7720e4289f0caf3e418469951cd66bb5efbefb298e6b016a187"
    ),
    "python3.10/libpython3.10-minimal_3.10.4-3_amd64.deb": (
        "e83f695339a6b6b691ccfe11e50a54693606371d294351bdeaaedf2fcc1ba09a"
    ),
    "python3.10/libpython3.10-stdlib_3.10.4-3_amd64.deb": (
        "9f631dd658cf253c4a0016d17072056218d8f839383fb41c28fbba1f860364d4"
    ),
}

# Built from Ubuntu 26.04's source: its binaries need a newer glibc than Debian 12 has,
# and no registry has binaries without the GIL.
NEWEST = "python3.14"
FREE_THREADED = "python3.14t"
_SOURCE = "python3.14/python3.14_3.14.4.orig.tar.xz"
_SOURCE_SHA256 = "d923c51303e38e249136fc1bdf3568d56ecb03214efdef48516176d3d7faaef8"


def interpreter(name: str) -> Path:
    """Return the path of a Python, which is made once and kept in ``build/``.

    If the archive cannot be reached, the calling test is skipped. If headers for the
    build are missing, the test is skipped, or fails under ``CI=true``.
    """
    kept = BUILD / "pythons" / name
    if not kept.is_dir():
        with made_in_one_piece(kept) as folder:
            if name == OLDEST:
                for package, sha256 in _BINARIES.items():
                    deb = _download(package, sha256, folder)
                    unpack = [require_tool("dpkg-deb"), "--extract", deb, folder]
                    run(unpack, limit_s=60)
                    deb.unlink()
            else:
                _compile(folder, "--disable-gil" if name == FREE_THREADED else "")
    return kept / "usr/bin" / name


def _compile(folder: Path, option: str) -> None:
    for header in ("ffi.h", "openssl/ssl.h", "zlib.h"):
        places = (Path("/usr/include"), *Path("/usr/include").glob("*-linux-gnu"))
        if not any((place / header).exists() for place in places):
            skip_or_fail(f"there is no {header} to build Python with")
    archive = _download(_SOURCE, _SOURCE_SHA256, folder)
    source = folder / "source"
    source.mkdir()
    unpack = ["tar", "--extract", "--strip-components=1", "--file", archive]
    run([*unpack, "--directory", source], limit_s=60)
    options = [option, "--prefix=/usr", "--disable-test-modules"]
    # Low optimisation halves the time of the build; the tests need no fast Python.
    options += ["CFLAGS=-O1 -g0", "--without-doc-strings"]
    configure = [source / "configure", "--quiet", *filter(None, options)]
    run(configure, limit_s=_LIMIT_S, cwd=source)
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2")
    make = ["make", "--silent", "-j", jobs, "install", f"DESTDIR={folder}"]
    run(make, limit_s=_LIMIT_S, cwd=source)
    run(["rm", "-r", source, archive], limit_s=60)


def _download(path: str, sha256: str, folder: Path) -> Path:
    try:
        with urllib.request.urlopen(f"{_ARCHIVE}/{path}", timeout=60) as answer:  # noqa: S310
            content = answer.read()
    except (urllib.error.URLError, TimeoutError) as error:
        # CI machines need not reach it: they install packages of another release.
        pytest.skip(f"{_ARCHIVE}/{path} cannot be downloaded: {error}")
    assert hashlib.sha256(content).hexdigest() == sha256, path
    saved = folder / Path(path).name
    saved.write_bytes(content)
    return saved
