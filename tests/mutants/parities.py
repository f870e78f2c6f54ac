# SPDX-License-Identifier: BSD-3-Clause
"""Edits of what keeps and sends parity, each of which takes away one check."""

from __future__ import annotations

from mutations import Mutation

MENDER = "core/repair/mender.c"

PARITIES = (
    Mutation(
        "early parity of no group is dropped once groups are known",
        MENDER,
        "	if (belongs && is_needed(mender, *parity))\n",
        "	if (is_needed(mender, *parity))\n",
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
        "slot->state != MMC_SLOT_EARLY && is_of(slot, parity)",
        "is_of(slot, parity)",
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
        "a pause in a batch costs its sender no pace",
        "core/flow/turn.c",
        "					 turn->stop - turn->next);\n	set_pace",
        "					 turn->nchunks);\n	set_pace",
        "turn_open_loop_test",
    ),
)
