# SPDX-License-Identifier: BSD-3-Clause
"""The state of a communicator: what it has opened, what is under way, how it ends."""
