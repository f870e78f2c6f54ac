# SPDX-License-Identifier: BSD-3-Clause
"""gather.py's ranks, with a group and a Q_Key that are given instead of drawn.

Both are numbers, in the variables GROUP and QKEY.
"""

from __future__ import annotations

import os

import gather

from mpimcast import transport
from mpimcast.config import Config
from mpimcast.transport import Draft, Verbs


class Keyed(Verbs):
    """The transport, in the given group."""

    def __init__(self, config: Config, draft: Draft) -> None:
        group, qkey = (int(os.environ[name], 0) for name in ("GROUP", "QKEY"))
        super().__init__(config, draft._replace(group=group, qkey=qkey))


transport.TRANSPORTS = (Keyed,)

if __name__ == "__main__":
    gather.main()
