# SPDX-License-Identifier: BSD-3-Clause
"""A relay, which ``mpirun`` launches: ``python -m mpimcast._launch.relay TOKEN``.

It hands its place in the MPI job over to the process that has listened for it, and
lives for as long as that process does, so that the launcher keeps the job. Its exit
status tells the launcher whether that process has come to its end in good order.
"""

from __future__ import annotations

import os
import sys

from mpimcast._launch import place, sockets

# Each launcher has another name for the rank.
_RANKS = ("PMI_RANK", "PMIX_RANK")


def main(token: str) -> int:
    """Hand the place over; return the exit status."""
    given = place.own()
    rank = next(os.environ[name] for name in _RANKS if name in os.environ)
    with sockets.connect(token, rank) as connection:
        place.send(connection, given)
        # The launcher must see these closed when that process closes them.
        for descriptor in given.descriptors.values():
            os.close(descriptor)
        farewell = connection.recv(1)
        while connection.recv(1):
            pass
    return 0 if farewell else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
