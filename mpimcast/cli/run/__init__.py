# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast run``: unmodified mpi4py programs on our communicators."""
