# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for all rooms: words for messages, waits that are logged, the log."""
