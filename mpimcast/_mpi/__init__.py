# SPDX-License-Identifier: BSD-3-Clause
"""The side of the MPI library: buffers, messages between ranks, error codes."""
