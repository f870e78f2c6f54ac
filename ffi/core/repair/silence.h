/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks silent senders how much they have sent. Chunks that such a sender reports and
 * that are not here are lost, since no later chunk will show the gap.
 */
#ifndef MMC_CORE_REPAIR_SILENCE_H
#define MMC_CORE_REPAIR_SILENCE_H

#include "core/repair/loss.h"
#include "core/wire/message.h"

/*
 * Takes the word of `owner` that it has sent the first `sent_chunks` of its block; with
 * `pausing`, that no more will follow soon, so chunks not here yet are not on their
 * way. Returns whether a question about its silence was open and the sender had sent
 * nothing more.
 */
bool mmc_silence_tell(struct mmc_loss *loss, uint32_t owner,
		      uint32_t sent_chunks, bool pausing, uint64_t now_ns);

/*
 * Returns the sequence of a silent sender to ask about now, or NULL; call until it
 * returns NULL. Chunks that silent senders have reported and that are not in `claimed`
 * are counted as lost. `drained` [nchains] is how much of each chain all receivers
 * have: a sender that is a window beyond it waits.
 */
struct mmc_sequence *mmc_silence_ask(struct mmc_loss *loss,
				     const struct mmc_bitmap *claimed,
				     const uint32_t *drained, uint64_t now_ns);

/* Returns how many chunks `rank` has sent, as far as is known here. */
struct mmc_sent mmc_silence_known(const struct mmc_loss *loss, uint32_t rank);

/*
 * Records that a rank below misses `rank` too: it is asked about, unless it just has
 * been.
 */
void mmc_silence_want(struct mmc_loss *loss, uint32_t rank, uint64_t now_ns);

/*
 * Takes the parent's word on how much a sender has sent. If that is no news here, the
 * parent asks on.
 */
void mmc_silence_vouch(struct mmc_loss *loss, struct mmc_sent sent,
		       uint64_t now_ns);

#endif
