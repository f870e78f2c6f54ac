/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides when to ask about silent senders how much they have sent. What a silent
 * sender has sent and is not here is lost: no later chunk of it will show the gap.
 * Silent senders may be asked themselves, or the parent in the tree of reports about
 * them (core/operation/silence.h).
 */
#ifndef MMC_CORE_REPAIR_SILENCE_H
#define MMC_CORE_REPAIR_SILENCE_H

#include "core/repair/loss.h"
#include "core/wire/message.h"

/*
 * Takes the word of `owner` that it has sent the first `sent_chunks` chunks of its
 * block. With `pausing`, no more will follow soon, so chunks that are not here are not
 * on their way either. Returns whether a question about the sender's silence was open,
 * and the answer is that it had sent nothing more.
 */
bool mmc_silence_tell(struct mmc_loss *loss, uint32_t owner,
		      uint32_t sent_chunks, bool pausing, uint64_t now_ns);

/*
 * Returns the sequence of a silent sender to ask about now, or NULL. To be called until
 * it returns NULL. Counts chunks as late or lost that silent senders have reported and
 * that are not in `claimed`. `drained`, which is [nchains], is how much of each chain
 * all receivers have drained: a sender that is a window beyond it may be silent since
 * it waits.
 */
struct mmc_sequence *mmc_silence_ask(struct mmc_loss *loss,
				     const struct mmc_bitmap *claimed,
				     const uint32_t *drained, uint64_t now_ns);

/* Returns how many chunks `rank` has sent, as far as this rank knows. */
struct mmc_sent mmc_silence_known(const struct mmc_loss *loss, uint32_t rank);

/*
 * Records that a rank below this one in the tree of reports has asked about `rank`.
 * mmc_silence_ask() will return that sender, too, unless it just has.
 */
void mmc_silence_want(struct mmc_loss *loss, uint32_t rank, uint64_t now_ns);

/*
 * Takes the parent's word on how much a sender has sent. If it is no more than is known
 * here, the parent asks further, and may know more at the next question.
 */
void mmc_silence_vouch(struct mmc_loss *loss, struct mmc_sent sent,
		       uint64_t now_ns);

#endif
