# SPDX-License-Identifier: BSD-3-Clause
"""What talks to the MPI library: buffers, messages between ranks, error codes."""
