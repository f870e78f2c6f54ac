/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads of rank 1's memory that its device allows or refuses. */
#ifndef MMC_TESTS_VERBS_REFUSAL_H
#define MMC_TESTS_VERBS_REFUSAL_H

#include "verbs_recovery.h"

/* What has come of a rank's read. */
struct outcome {
	uint32_t nended;
	uint32_t nbytes;
	uint8_t bytes[256];
};

/* Polls all ranks once; notes the end of a read of `reader`. No connection breaks. */
static inline void turn(const struct team *team, uint32_t reader,
			struct outcome *outcome)
{
	struct mmc_event events[8];

	usleep(200); /* the guest's only processor also sends */
	for (uint32_t rank = 0; rank < team->nranks; rank++) {
		struct mmc_endpoint *endpoint = team->endpoints[rank];
		int count = endpoint->driver->poll(endpoint, events, 8);

		for (int i = 0; i < count; i++) {
			CHECK(events[i].kind != MMC_EVENT_BROKEN);
			if (events[i].kind != MMC_EVENT_READ)
				continue;
			CHECK_EQ(rank, reader);
			outcome->nended++;
			outcome->nbytes = events[i].nbytes;
			if (events[i].nbytes > 0)
				memcpy(outcome->bytes, events[i].body,
				       events[i].nbytes);
		}
	}
}

static inline bool is_up(const struct team *team, uint32_t reader)
{
	const struct mmc_verbs_connection *ends[] = {
		connection_to(team, reader, 1),
		connection_to(team, 1, reader),
	};

	return ends[0]->link == MMC_VERBS_LINK_UP && ends[0]->proven &&
	       ends[1]->link == MMC_VERBS_LINK_UP && ends[1]->proven;
}

/* Polls all ranks until the connection between `reader` and rank 1 is up. */
static inline void await_up(const struct team *team, uint32_t reader)
{
	uint64_t until_ns = patience_ns();
	struct outcome outcome = { 0 };

	while (!is_up(team, reader) && CHECK(mmc_verbs_clock_ns() < until_ns))
		turn(team, reader, &outcome);
	CHECK_EQ(outcome.nended, 0);
}

/*
 * Reads from rank 1 as `reader`. Returns how many bytes have come, 0 if the read was
 * refused. Waits until the connection is up in either case.
 */
static inline uint32_t read_as(const struct team *team, uint32_t reader,
			       struct mmc_stretch stretch)
{
	struct mmc_endpoint *endpoint = team->endpoints[reader];
	struct mmc_verbs_connection *connection =
		connection_to(team, reader, 1);
	uint64_t until_ns = patience_ns();
	uint32_t before = connection->incarnation;
	struct outcome outcome = { 0 };

	CHECK_EQ(endpoint->driver->read(endpoint, 1, &stretch, 1, 0), 0);
	while (outcome.nended == 0 && CHECK(mmc_verbs_clock_ns() < until_ns))
		turn(team, reader, &outcome);
	if (outcome.nbytes > 0) {
		CHECK_BYTES(outcome.bytes,
			    (const uint8_t *)(uintptr_t)stretch.address,
			    outcome.nbytes);
		CHECK_EQ(connection->incarnation, before);
	} else {
		CHECK_EQ(connection->status, IBV_WC_REM_ACCESS_ERR);
		CHECK_EQ(connection->incarnation, before + 1);
	}
	await_up(team, reader);
	return outcome.nbytes;
}

#endif
