# SPDX-License-Identifier: BSD-3-Clause
"""The settings: their values, where each comes from, and what users misspell."""
