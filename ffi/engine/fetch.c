/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "engine/receive.h"
#include "support/assert.h"

/* How many slots are added when all are in use: as many as one operation can fill. */
#define SLOTS MMC_READS_MAX

/* Adds SLOTS free slots. Returns 0 or -MMC_ENOMEM. */
static int grow(struct mmc_fetches *fetches)
{
	uint32_t nslots = fetches->nslots + SLOTS;
	struct mmc_fetch *slots =
		realloc(fetches->slots, nslots * sizeof(*slots));

	if (slots == NULL)
		return -MMC_ENOMEM;
	memset(slots + fetches->nslots, 0, SLOTS * sizeof(*slots));
	fetches->slots = slots;
	fetches->nslots = nslots;
	return 0;
}

/* Finds a free slot, or adds one. Returns its number, or -MMC_ENOMEM. */
static int64_t find_slot(struct mmc_request *request)
{
	struct mmc_fetches *fetches = &request->stream->team->fetches;

	for (uint32_t i = 0; i < fetches->nslots; i++)
		if (!fetches->slots[i].in_use)
			return i;
	mmc_count(&request->stream->counters, MMC_COUNT_ALLOCATIONS, 1);
	if (grow(fetches) != 0)
		return -MMC_ENOMEM;
	return fetches->nslots - SLOTS;
}

/* Returns how many bytes of the bitmap, or of chunks, the read brings. */
static uint32_t payload_bytes(const struct mmc_fetch *fetch)
{
	const struct mmc_layout *layout = mmc_op_layout(fetch->request->op);
	uint32_t last = fetch->run.first + fetch->run.count - 1;
	uint64_t nbytes;

	if (fetch->reads_map)
		return fetch->run.count * (uint32_t)sizeof(uint64_t);
	nbytes = mmc_layout_offset(layout, last) -
		 mmc_layout_offset(layout, fetch->run.first) +
		 mmc_layout_payload(layout, last);
	return (uint32_t)nbytes;
}

/*
 * Hands a read to the driver. Behind the bitmap's words, or the chunks, the driver
 * reads the generation: if that is unchanged, the memory was the advertised operation's
 * when it was read. Returns 0, -MMC_EAGAIN if the driver has no room, or another
 * negative error if the read is impossible.
 */
static int submit(struct mmc_team *team, uint32_t slot)
{
	struct mmc_endpoint *endpoint = team->endpoint;
	const struct mmc_fetch *fetch = &team->fetches.slots[slot];
	const struct mmc_op *op = fetch->request->op;
	const struct mmc_advert *advert = mmc_op_left_advert(op);
	const struct mmc_stretch stretches[] = {
		{
			.address = fetch->reads_map
					   ? advert->map_address +
						     fetch->run.first *
							     sizeof(uint64_t)
					   : advert->data_address +
						     mmc_layout_offset(
							     mmc_op_layout(op),
							     fetch->run.first),
			.key = fetch->reads_map ? advert->map_key
						: advert->data_key,
			.nbytes = payload_bytes(fetch),
		},
		{
			.address = advert->map_address - MMC_GENERATION_BYTES,
			.key = advert->map_key,
			.nbytes = MMC_GENERATION_BYTES,
		},
	};

	/* What was granted over a connection has ended with it. */
	if (endpoint->reconnects != fetch->request->reconnects)
		return -MMC_ENODEV;
	return endpoint->driver->read(endpoint, mmc_op_left(op), stretches, 2,
				      slot);
}

/* Places the chunks of a completed read. */
static void place_chunks(const struct mmc_fetch *fetch, const uint8_t *bytes,
			 uint64_t now_ns)
{
	struct mmc_request *request = fetch->request;
	const struct mmc_layout *layout = mmc_op_layout(request->op);
	uint64_t from = mmc_layout_offset(layout, fetch->run.first);

	for (uint32_t i = 0; i < fetch->run.count; i++) {
		uint32_t chunk = fetch->run.first + i;
		uint64_t offset = mmc_layout_offset(layout, chunk) - from;

		if (mmc_op_on_fetched(request->op, chunk, now_ns) ==
		    MMC_VERDICT_PLACE)
			mmc_request_place(request, chunk, bytes + offset,
					  mmc_layout_payload(layout, chunk));
	}
}

/* Tells the operation that a read has ended: with `bytes`, or NULL if it has failed. */
static void finish(const struct mmc_fetch *fetch, const uint8_t *bytes,
		   uint64_t now_ns)
{
	struct mmc_op *op = fetch->request->op;
	uint64_t generation = 0;

	fetch->request->stream->needs_poll = true;
	if (fetch->reads_map) {
		mmc_op_on_map(op, fetch->run, bytes, now_ns);
		return;
	}
	if (bytes != NULL)
		memcpy(&generation, bytes + payload_bytes(fetch),
		       sizeof(generation));
	if (mmc_op_on_read(op, fetch->run, generation))
		place_chunks(fetch, bytes, now_ns);
}

/*
 * Submits the read of a slot; a read that is impossible ends at once as failed. Returns
 * whether the driver had room: if not, the slot waits.
 */
static bool begin(struct mmc_team *team, uint32_t slot)
{
	struct mmc_fetch *at = &team->fetches.slots[slot];
	struct mmc_fetch fetch;
	int rv = submit(team, slot);

	team->fetches.nwaiting -= at->waiting;
	at->waiting = rv == -MMC_EAGAIN;
	team->fetches.nwaiting += at->waiting;
	if (rv == 0 || rv == -MMC_EAGAIN)
		return rv == 0;
	fetch = *at;
	at->in_use = false;
	finish(&fetch, NULL, mmc_team_now_ns(team));
	return true;
}

void mmc_request_fetch(struct mmc_request *request,
		       const struct mmc_action *action)
{
	struct mmc_team *team = request->stream->team;
	struct mmc_fetch fetch = {
		.request = request,
		.run = action->run,
		.in_use = true,
		.reads_map = action->kind == MMC_ACTION_READ_MAP,
	};
	int64_t slot = find_slot(request);

	if (slot < 0) {
		finish(&fetch, NULL, mmc_team_now_ns(team));
		return;
	}
	team->fetches.slots[slot] = fetch;
	begin(team, (uint32_t)slot);
}

void mmc_team_on_fetched(struct mmc_team *team, const struct mmc_event *event,
			 uint64_t now_ns)
{
	struct mmc_fetch *at;
	struct mmc_fetch fetch;
	bool whole;

	MMC_ASSERT(event->cookie < team->fetches.nslots);
	at = &team->fetches.slots[event->cookie];
	MMC_ASSERT(at->in_use && !at->waiting);
	fetch = *at;
	at->in_use = false;
	if (fetch.request == NULL)
		return;
	whole = event->nbytes == payload_bytes(&fetch) + MMC_GENERATION_BYTES;
	finish(&fetch, whole ? event->body : NULL, now_ns);
}

void mmc_team_fetch_waiting(struct mmc_team *team)
{
	for (uint32_t i = 0; i < team->fetches.nslots; i++)
		if (team->fetches.slots[i].waiting && !begin(team, i))
			return;
}

void mmc_request_forget_fetches(struct mmc_request *request)
{
	struct mmc_fetches *fetches = &request->stream->team->fetches;

	for (uint32_t i = 0; i < fetches->nslots; i++) {
		struct mmc_fetch *at = &fetches->slots[i];

		if (!at->in_use || at->request != request)
			continue;
		at->request = NULL;
		at->in_use = !at->waiting;
		fetches->nwaiting -= at->waiting;
		at->waiting = false;
	}
}

void mmc_fetches_close(struct mmc_fetches *fetches)
{
	free(fetches->slots);
	*fetches = (struct mmc_fetches){ 0 };
}
