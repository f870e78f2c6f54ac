# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast proxy``: runs the operations of other processes of a node."""
