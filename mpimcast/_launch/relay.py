# SPDX-License-Identifier: BSD-3-Clause
"""A relay, which ``mpirun`` launches: ``python -m mpimcast._launch.relay TOKEN``.

It hands its place in the MPI job over to the process that listens for it, and lives as
long as that process, so that the launcher does not end the job. It exits with status 0
if that process ended normally, and with 1 if it died.
"""

from __future__ import annotations

import os
import sys

from mpimcast._launch import place, sockets

# The variables in which launchers tell the rank: MPICH's, and Open MPI's.
_RANKS = ("PMI_RANK", "PMIX_RANK")


def main(token: str) -> int:
    """Hand the place over; return the exit status."""
    given = place.own()
    rank = next(given.variables[name] for name in _RANKS if name in given.variables)
    with sockets.connect(token, rank) as connection:
        place.send(connection, given)
        # The launcher learns of that process's end by its sockets, if no copy is open.
        for descriptor in given.descriptors.values():
            os.close(descriptor)
        farewell = connection.recv(1)
        while connection.recv(1):
            pass
    return 0 if farewell else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
