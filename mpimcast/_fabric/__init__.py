# SPDX-License-Identifier: BSD-3-Clause
"""Fabrics of simulated networks: graphs, routes, multicast trees, and their arrays."""
