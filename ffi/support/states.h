/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State machines as tables. A machine's header has a macro that lists its transitions
 * as X(state, event, next state). `make reference` draws the diagrams of PROTOCOL.md
 * and ARCHITECTURE.md from the same macros.
 */
#ifndef MMC_SUPPORT_STATES_H
#define MMC_SUPPORT_STATES_H

#include <stdbool.h>
#include <stdint.h>

/* A row of a table: `event` leads from `state` to `next`. */
struct mmc_transition {
	uint8_t state;
	uint8_t event;
	uint8_t next;
};

/*
 * Looks up where `event` leads from `state`, in a table of `nrows` rows. Returns true
 * with that state in `*next`, or false if the table has no such row.
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
