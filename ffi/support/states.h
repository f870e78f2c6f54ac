/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State machines as tables. Each table is a macro X(state, event, next state) in the
 * header of its machine, from which the documents draw their diagrams as well.
 */
#ifndef MMC_SUPPORT_STATES_H
#define MMC_SUPPORT_STATES_H

#include <stdbool.h>
#include <stdint.h>

struct mmc_transition {
	uint8_t state;
	uint8_t event;
	uint8_t next;
};

/*
 * Returns whether `event` leads anywhere from `state`, in a table of `nrows` rows. If
 * so, writes where.
 */
static inline bool mmc_transition_find(const struct mmc_transition *rows,
				       unsigned nrows, unsigned state,
				       unsigned event, unsigned *next)
{
	for (unsigned i = 0; i < nrows; i++)
		if (rows[i].state == state && rows[i].event == event) {
			*next = rows[i].next;
			return true;
		}
	return false;
}

#endif
