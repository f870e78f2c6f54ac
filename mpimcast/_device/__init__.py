# SPDX-License-Identifier: BSD-3-Clause
"""Memory of accelerators, which the host cannot use: whose it is, and copies of it."""
