# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast sim``: operations on a simulated network."""
