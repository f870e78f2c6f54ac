# SPDX-License-Identifier: BSD-3-Clause
"""Launches what a process lacks: a proxy, or MPI where no MPI launcher has started it.

MPI libraries learn from their launcher who takes part in a job, and how to reach them.
So processes that torchrun has started have `mpirun` launch a job of as many relays.
Each relay hands the place that the launcher gave it over to one of the processes, which
then initialises MPI as if the launcher had started it. Importing this package does not
initialise MPI.
"""
