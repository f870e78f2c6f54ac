# SPDX-License-Identifier: BSD-3-Clause
"""MPI for processes that no MPI launcher has started, such as torchrun's.

MPI libraries learn from their launcher who takes part in a job, and how to reach them.
So the processes have `mpirun` launch a job of as many relays. Each relay hands the
place that the launcher gave it over to one of the processes, which then initialises MPI
as if the launcher had started it. Importing this package does not initialise MPI.
"""
