# SPDX-License-Identifier: BSD-3-Clause
"""Segments: memory without a name, which the ranks of a node share by descriptor."""

from __future__ import annotations

import fcntl
import mmap
import os

from mpimcast.errors import TransportError


def create(nbytes: int, what: str = "") -> int:
    """Create a segment, all zero, and return its descriptor.

    It takes memory only where it is written, and can no longer change its size, so
    that no rank's mapping loses its end.

    Parameters
    ----------
    nbytes
        Its size.
    what
        Its size in words, for messages; by default that of a node's own segment.
    """
    try:
        fd = os.memfd_create("mpimcast", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(fd, nbytes)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        except OSError:
            os.close(fd)
            raise
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise TransportError(
            f"cannot create {what or f'NODE_BYTES={nbytes}'} of shared memory: {why}"
        ) from error
    return fd


def check(fd: int, nbytes: int) -> None:
    """Raise TransportError unless a descriptor is that of a segment of this size."""
    try:
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    except OSError:
        seals = 0
    if not seals & fcntl.F_SEAL_SHRINK or os.fstat(fd).st_size < nbytes:
        raise TransportError("the shared memory is too short, or not sealed")


class Clearing:
    """The view of a segment by which its creator makes parts of it zero again.

    It has a descriptor of its own. It must be closed after the segment's `Node`, since
    to close a descriptor tells the other ranks that this process has ended.
    """

    def __init__(self, fd: int, nbytes: int) -> None:
        try:
            self._map = mmap.mmap(fd, nbytes)
        except (OSError, ValueError) as error:
            raise TransportError(
                f"cannot map NODE_BYTES={nbytes} of shared memory: {error}"
            ) from error

    def clear(self, offset: int, nbytes: int) -> None:
        """Make whole pages zero, and give their memory back to the kernel."""
        self._map.madvise(mmap.MADV_REMOVE, offset, nbytes)

    def close(self) -> None:
        """Release the view."""
        self._map.close()
