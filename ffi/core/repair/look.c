/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/look.h"

#include "support/assert.h"
#include "support/bits.h"
#include "support/states.h"

/* The longest time from a look to the next. */
#define INTERVAL_MAX_NS MMC_MS_NS

static const struct mmc_transition transitions[] = {
#define LOOK_ROW(state, event, next)                                           \
	{ MMC_LOOK_##state, MMC_LOOK_##event, MMC_LOOK_##next },
	MMC_LOOK_TABLE(LOOK_ROW)
#undef LOOK_ROW
};

static void step(struct mmc_look *look, enum mmc_look_event event)
{
	unsigned next;

	MMC_ASSERT(mmc_transition_find(
		transitions, sizeof(transitions) / sizeof(*transitions),
		look->state, event, &next));
	look->state = (enum mmc_look_state)next;
}

void mmc_look_init(struct mmc_look *look, uint32_t nwords)
{
	*look = (struct mmc_look){
		.nwords = nwords,
		.next_word = nwords,
		.at_ns = MMC_NEVER_NS,
	};
}

void mmc_look_soon(struct mmc_look *look, uint64_t now_ns)
{
	look->again = true;
	look->interval_ns = look->srtt_ns;
	if (look->state == MMC_LOOK_NONE)
		look->at_ns = now_ns;
}

bool mmc_look_goes_on(struct mmc_look *look, uint64_t now_ns)
{
	if (now_ns >= look->at_ns) {
		step(look, MMC_LOOK_BEGIN);
		look->at_ns = MMC_NEVER_NS;
		look->next_word = 0;
		look->again = false;
	}
	return look->next_word < look->nwords;
}

void mmc_look_read(struct mmc_look *look, uint32_t end_word)
{
	step(look, MMC_LOOK_READ);
	look->next_word = end_word;
	look->nreading++;
}

void mmc_look_found(struct mmc_look *look)
{
	step(look, MMC_LOOK_PRESENT);
}

void mmc_look_end(struct mmc_look *look, uint64_t now_ns)
{
	if (look->nreading > 0 || look->next_word < look->nwords)
		return;
	look->interval_ns =
		look->state == MMC_LOOK_FOUND
			? look->srtt_ns
			: mmc_min_u64(2 * look->interval_ns, INTERVAL_MAX_NS);
	if (look->again)
		look->at_ns = now_ns;
	else if (look->state != MMC_LOOK_BEGUN)
		look->at_ns = now_ns + look->interval_ns;
	step(look, MMC_LOOK_END);
}

void mmc_look_stop(struct mmc_look *look)
{
	step(look, MMC_LOOK_END);
	look->at_ns = MMC_NEVER_NS;
	look->next_word = look->nwords;
}
