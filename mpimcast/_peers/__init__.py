# SPDX-License-Identifier: BSD-3-Clause
"""Peer algorithms: other ways to run collectives, as schedules of unicast messages."""
