# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast bench``: collectives of mpimcast and of the MPI library."""
