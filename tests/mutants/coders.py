# SPDX-License-Identifier: BSD-3-Clause
"""Edits of the coder, each of which takes away one check or ordering."""

from __future__ import annotations

from mutations import Mutation

CODER = "engine/threads/coder.c"
STOCK = "engine/stock.c"

CODERS = (
    Mutation(
        "a cancelled operation waits for groups that are being mended",
        "engine/api/request.c",
        "mmc_engine_await_coder(engine))",
        "false)",
        "coder_loopback_test",
        runs=10,
    ),
    Mutation(
        "buffers are the user's again once no task reads them",
        "engine/completion.c",
        "	mmc_request_forget_tasks(request);\n",
        "",
        "coder_loopback_test",
        runs=3,
    ),
    Mutation(
        "a request is freed once no task uses its memory",
        "engine/spares.c",
        "	mmc_request_forget_tasks(request);\n",
        "",
        "coder_loopback_test",
        runs=3,
    ),
    Mutation(
        "the end of a task that has begun is waited for",
        CODER,
        "		await_end(coder, i);\n",
        "",
        "coder_test",
        runs=6,
    ),
    Mutation(
        "whoever sleeps is woken by a mended group",
        CODER,
        "	if (sleeper != MMC_CODER_NOBODY)\n",
        "	if (false)\n",
        "coder_test",
    ),
    Mutation(
        "nothing is written over parity that a task still computes",
        STOCK,
        "item->state = MMC_STOCKED_OLD;",
        "item->state = MMC_STOCKED_NOTHING;",
        "stock_test",
    ),
)
