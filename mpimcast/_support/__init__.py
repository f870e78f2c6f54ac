# SPDX-License-Identifier: BSD-3-Clause
"""What every room may need: words for messages, waits that are logged, the log."""
