# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast info``: what was built and found, and what a job would use."""
