# SPDX-License-Identifier: BSD-3-Clause
"""Edits of a host's link to its runner, each of which takes away one check."""

from __future__ import annotations

from mutations import Mutation

LINK = "drivers/remote/link.c"

LINKS = (
    Mutation(
        "a host notices that its runner has ended",
        LINK,
        "		link->broken = true;\n}\n\n/*\n * Beats",
        "		link->broken = false;\n}\n\n/*\n * Beats",
        "proxy_test",
    ),
    Mutation(
        "a host notices that its runner stands still",
        LINK,
        "++link->nmissed == BEATS",
        "false",
        "proxy_test",
    ),
    Mutation(
        "a pause of host and runner counts as one missed beat",
        LINK,
        "++link->nmissed == BEATS",
        "++link->nmissed == 1",
        "link_test",
    ),
    Mutation(
        "a pause of host and runner does not use up the time of a call",
        LINK,
        "mmc_min_u64(now_ns - before_ns, sleep_ns)",
        "mmc_min_u64(now_ns - before_ns, left_ns)",
        "link_test",
    ),
    Mutation(
        "a host that has armed itself looks once more for bits",
        LINK,
        "	       mmc_ring_see(&link->bridge->nshown) != link->nshown;",
        "	       false;",
        "remote_landing_test",
    ),
)
