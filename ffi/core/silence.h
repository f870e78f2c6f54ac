/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Senders of whom nothing comes: they are asked how much they have sent, and what
 * they say and is not here is lost, for no later chunk will show the gap.
 */
#ifndef MMC_CORE_SILENCE_H
#define MMC_CORE_SILENCE_H

#include "core/loss.h"

/*
 * `owner` says that it has sent the first `sent_chunks` of its block; `pausing`:
 * and that no more will come soon, so what is not here yet is not on its way.
 * Returns whether its silence was asked about, and it had sent nothing in it.
 */
bool mmc_silence_tell(struct mmc_loss *loss, uint32_t owner,
		      uint32_t sent_chunks, bool pausing, uint64_t now_ns);

/*
 * Whether a silent sender is to be asked for its record now; if so writes its rank.
 * Call until it returns false. What silent senders have told and is not in `claimed`
 * is lost. `drained` [nchains] is how much of each chain all receivers have: who has
 * sent a window beyond waits.
 */
bool mmc_silence_ask(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		     const uint32_t *drained, uint64_t now_ns, uint32_t *peer);

#endif
