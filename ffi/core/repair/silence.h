/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Senders of whom nothing comes: they are asked how much they have sent, and what
 * they say and is not here is lost, for no later chunk will show the gap.
 */
#ifndef MMC_CORE_REPAIR_SILENCE_H
#define MMC_CORE_REPAIR_SILENCE_H

#include "core/repair/loss.h"
#include "core/wire/message.h"

/*
 * `owner` says that it has sent the first `sent_chunks` of its block; `pausing`:
 * and that no more will come soon, so what is not here yet is not on its way.
 * Returns whether its silence was asked about, and it had sent nothing in it.
 */
bool mmc_silence_tell(struct mmc_loss *loss, uint32_t owner,
		      uint32_t sent_chunks, bool pausing, uint64_t now_ns);

/*
 * The sequence of a silent sender about which is to be asked now, or NULL; call until
 * then. What silent senders have told and is not in `claimed` is lost. `drained`
 * [nchains] is how much of each chain all receivers have: who has sent a window beyond
 * waits.
 */
struct mmc_sequence *mmc_silence_ask(struct mmc_loss *loss,
				     const struct mmc_bitmap *claimed,
				     const uint32_t *drained, uint64_t now_ns);

/* How many chunks `rank` has sent, as far as is known here. */
struct mmc_sent mmc_silence_known(const struct mmc_loss *loss, uint32_t rank);

/* Another rank misses `rank` too: it is asked, unless it just has been. */
void mmc_silence_want(struct mmc_loss *loss, uint32_t rank, uint64_t now_ns);

/* The parent knows of so much, and will ask on if that is no news. */
void mmc_silence_vouch(struct mmc_loss *loss, struct mmc_sent sent,
		       uint64_t now_ns);

#endif
