# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``python -m mpimcast``, and what they share."""
