# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast trace``: merges what ranks have traced, and tells who waited."""
