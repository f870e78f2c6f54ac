# SPDX-License-Identifier: BSD-3-Clause
"""Edits of the code that keeps and sends parity, each of which removes one check."""

from __future__ import annotations

from mutations import Mutation

MENDER = "core/repair/mender.c"

PARITIES = (
    Mutation(
        "early parity of the wrong length is dropped once groups are known",
        MENDER,
        "	if (belongs)\n",
        "",
        "mender_test",
    ),
    Mutation(
        "early parity takes a slot once",
        MENDER,
        "	if (is_kept(mender, parity))\n		return MMC_UNKEPT_USELESS;\n",
        "",
        "mender_test",
    ),
    Mutation(
        "early parity does not count as held before it is judged",
        MENDER,
        "mender->slots[i].state != MMC_SLOT_EARLY &&\n",
        "true &&\n",
        "mender_test",
    ),
    Mutation(
        "early parity shows that its span was sent",
        "core/operation/parity.c",
        "		if (mmc_mender_judge(op->mender, i, &parity))\n",
        "		if (mmc_mender_judge(op->mender, i, &parity) && now_ns == 0)\n",
        "operation_parity_early_test",
    ),
    Mutation(
        "a batch that is cut short delays the next one by no more",
        "core/flow/turn.c",
        "turn->stop - turn->next);\n	set_pace",
        "turn->nchunks);\n	set_pace",
        "turn_open_loop_test",
    ),
    Mutation(
        "the first batch beyond a window keeps the pace of others",
        "core/flow/turn.c",
        "	turn->last_batch_chunks = turn->schedule.batch_chunks;\n",
        "",
        "turn_open_loop_test",
    ),
)
