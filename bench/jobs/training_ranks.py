# SPDX-License-Identifier: BSD-3-Clause
"""The program of each rank of a job that trains; rank 0 reports to job.py.

It measures training steps as ranks.py measures operations. torch's process group is
gloo's with all contenders; it carries nothing but what gloo itself is measured with.
"""

from __future__ import annotations

import json

from mpi4py import MPI

from bench.jobs.gloo import Gloo
from bench.jobs.ranks import Reporter, arguments, measure, versions


def main() -> None:
    """Run one rank."""
    options = arguments()
    world = MPI.Intracomm(MPI.COMM_WORLD)
    reporter = Reporter(options.socket, world.rank)
    group = Gloo(world, options.interface)
    # Only now Python finds torch, which these modules import.
    from bench.jobs.sharding import sharding_of
    from bench.jobs.training import Step

    sharding = sharding_of(world, options.transport, threads=options.threads)
    found = []
    for kind, nbytes, iterations in json.loads(options.tasks):
        step = Step(world, kind, nbytes, sharding)
        found.append(measure(world, step, step, iterations, reporter))
    reporter.send(state="result", found=found, versions=versions(group))
    group.close()


if __name__ == "__main__":
    main()
