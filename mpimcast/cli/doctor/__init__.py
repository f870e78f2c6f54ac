# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast doctor``: finds faulty nodes, and says how to repair them."""
