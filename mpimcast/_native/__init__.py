# SPDX-License-Identifier: BSD-3-Clause
"""The C library wrapped for Python; nothing here knows about MPI."""
