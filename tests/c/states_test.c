/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of transitions is searched for the next state. */
#include "support/states.h"

#include "check.h"

enum { NSTATES = 4, NEVENTS = 3, UNTOUCHED = 99 };

static const struct mmc_transition rows[] = {
	{ 0, 0, 1 }, { 0, 2, 3 }, { 1, 0, 1 }, { 1, 1, 2 }, { 2, 2, 0 },
};

/* The same table as a matrix; -1 where an event leads nowhere. */
static const int following[NSTATES][NEVENTS] = {
	{ 1, -1, 3 },
	{ 1, 2, -1 },
	{ -1, -1, 0 },
	{ -1, -1, -1 },
};

/* Each state and event leads where its row says; without a row nothing is written. */
static void rows_lead_on(void)
{
	const unsigned nrows = sizeof(rows) / sizeof(*rows);

	for (unsigned state = 0; state < NSTATES; state++)
		for (unsigned event = 0; event < NEVENTS; event++) {
			int next = following[state][event];
			unsigned found = UNTOUCHED;

			CHECK_EQ(mmc_transition_find(rows, nrows, state, event,
						     &found),
				 next >= 0);
			CHECK_EQ(found, next >= 0 ? next : UNTOUCHED);
		}
}

static void an_empty_table_leads_nowhere(void)
{
	unsigned found = UNTOUCHED;

	CHECK(!mmc_transition_find(rows, 0, 0, 0, &found));
	CHECK_EQ(found, UNTOUCHED);
}

CHECK_MAIN(CHECK_TEST(rows_lead_on), CHECK_TEST(an_empty_table_leads_nowhere))
