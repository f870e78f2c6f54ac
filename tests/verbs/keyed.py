# SPDX-License-Identifier: BSD-3-Clause
"""Run gather.py's ranks with a given multicast group and Q_Key.

The environment variables GROUP and QKEY contain them as numbers. Without this program,
both are drawn at random.
"""

from __future__ import annotations

import os

import gather

from mpimcast._native import transport
from mpimcast._native.draft import Draft
from mpimcast._native.transport import Verbs
from mpimcast._settings.config import Config


class Keyed(Verbs):
    """The verbs transport with the given group and Q_Key."""

    def __init__(self, config: Config, draft: Draft) -> None:
        group, qkey = (int(os.environ[name], 0) for name in ("GROUP", "QKEY"))
        super().__init__(config, draft._replace(group=group, qkey=qkey))


transport.TRANSPORTS = (Keyed,)

if __name__ == "__main__":
    gather.main()
