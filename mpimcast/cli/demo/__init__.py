# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast demo``: a model's layers, gathered both ways."""
