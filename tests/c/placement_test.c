/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives aim at places; payloads that do not belong there are evacuated. */
#include "drivers/placement.h"

#include "check.h"
#include "predictions.h"

#define NRANKS 3
#define BLOCK_CHUNKS 20
#define CHUNK_BYTES 8
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)
#define NSLOTS 8
#define EPOCH 5
#define CHANNEL (UINT64_C(77) << 16)

/* Ranks 0, 1 and 2 send on the first queue; the second is for control. */
struct stage {
	struct mmc_placement placement;
	struct mmc_placement_queue *queue;
	struct predictions predictions;
	uint8_t base[NCHUNKS * CHUNK_BYTES];
	uint8_t staging[NSLOTS][CHUNK_BYTES];
};

static void open_stage(struct stage *at)
{
	memset(at, 0, sizeof(*at));
	CHECK_EQ(mmc_placement_init(&at->placement, 2, NSLOTS, MMC_HEADER_BYTES,
				    CHUNK_BYTES),
		 0);
	at->queue = &at->placement.queues[0];
	at->predictions.base = at->base;
	at->predictions.nbytes = CHUNK_BYTES;
	at->predictions.count = NCHUNKS;
	for (uint32_t i = 0; i < NCHUNKS; i++)
		at->predictions.sources[i] = i / BLOCK_CHUNKS;
	for (uint32_t i = 0; i < NSLOTS; i++)
		at->queue->slots[i].staging = at->staging[i];
}

static int begin_with(struct stage *at, uint32_t nsubgroups)
{
	const struct mmc_header header = { .channel = CHANNEL, .epoch = EPOCH };
	const struct mmc_predictor predictor =
		predictions_predictor(&at->predictions, &header, nsubgroups);

	return mmc_placement_begin(&at->placement, &predictor);
}

static int begin(struct stage *at)
{
	return begin_with(at, 1);
}

/* Returns the chunk at whose place a slot aims, or NCHUNKS for none. */
static uint32_t aim_of(const struct stage *at, uint32_t slot)
{
	const struct mmc_prediction *aim = &at->queue->slots[slot].aim;

	if (aim->place == NULL)
		return NCHUNKS;
	return (uint32_t)(aim->place - at->base) / CHUNK_BYTES;
}

/* Posts a slot; returns the chunk at whose place it aims, or NCHUNKS for none. */
static uint32_t post(struct stage *at, uint32_t slot)
{
	mmc_placement_post(&at->placement, 0, &slot, 1);
	return aim_of(at, slot);
}

/* Completes the slot's receive with a chunk; returns where the payload is. */
static const uint8_t *come(struct stage *at, uint32_t slot, uint32_t chunk)
{
	const struct mmc_header header = {
		.channel = CHANNEL,
		.epoch = EPOCH,
		.index = chunk,
	};
	uint32_t nbytes = MMC_HEADER_BYTES + CHUNK_BYTES;
	struct mmc_placement_slot *to = &at->queue->slots[slot];
	uint8_t head[MMC_HEADER_BYTES];

	mmc_header_encode(head, &header, nbytes, MMC_CHECKSUM_HEADER);
	memset(to->aim.place != NULL ? to->aim.place : to->staging,
	       (int)chunk + 1, CHUNK_BYTES);
	return mmc_placement_complete(&at->placement, 0, slot,
				      chunk / BLOCK_CHUNKS, head, nbytes);
}

static bool defer(struct stage *at, uint32_t chunk)
{
	uint8_t payload[CHUNK_BYTES];

	memset(payload, (int)chunk + 1, sizeof(payload));
	return mmc_placement_defer(&at->placement,
				   at->base + chunk * CHUNK_BYTES, payload,
				   CHUNK_BYTES, chunk);
}

static void close_stage(struct stage *at)
{
	mmc_placement_end(&at->placement, true);
	mmc_placement_destroy(&at->placement);
}

/*
 * Receives that were posted before the operation take its next chunks, so later
 * receives aim further on.
 */
static void what_was_posted_before_counts(void)
{
	struct stage at;

	open_stage(&at);
	CHECK_EQ(post(&at, 0), NCHUNKS);
	CHECK_EQ(post(&at, 1), NCHUNKS);
	CHECK_EQ(begin(&at), 0);
	CHECK_EQ(begin(&at), -MMC_EINVAL);
	at.predictions.seen = 3;
	mmc_placement_resume(&at.placement, 0);
	CHECK_EQ(post(&at, 2), 5);
	CHECK_EQ(post(&at, 3), 6);
	CHECK(come(&at, 2, 5) == at.base + 5 * CHUNK_BYTES);
	CHECK_EQ(at.base[5 * CHUNK_BYTES], 6);
	close_stage(&at);
}

static void nothing_aims_at_what_is_here_already(void)
{
	struct stage at;

	open_stage(&at);
	CHECK_EQ(begin(&at), 0);
	at.predictions.here[1] = true;
	mmc_placement_resume(&at.placement, 0);
	CHECK_EQ(post(&at, 0), 0);
	CHECK_EQ(post(&at, 1), NCHUNKS);
	CHECK_EQ(post(&at, 2), 2);
	close_stage(&at);
}

/* Slots posted in one call aim as they would if each was posted alone. */
static void slots_are_posted_in_batches(void)
{
	const uint32_t slots[] = { 3, 0, 5, 2 };
	struct stage at;

	open_stage(&at);
	CHECK_EQ(begin(&at), 0);
	at.predictions.here[1] = true;
	mmc_placement_resume(&at.placement, 0);
	mmc_placement_post(&at.placement, 0, slots, 4);
	CHECK_EQ(aim_of(&at, 3), 0);
	CHECK_EQ(aim_of(&at, 0), NCHUNKS);
	CHECK_EQ(aim_of(&at, 5), 2);
	CHECK_EQ(aim_of(&at, 2), 3);
	CHECK_EQ(at.queue->naimed, 3);
	CHECK_EQ(at.queue->nposted, 4);
	close_stage(&at);
}

/* The predictor is told whether this rank's own datagrams use up receives. */
static void own_multicast_may_come_back(void)
{
	struct stage at;

	open_stage(&at);
	at.placement.loops = true;
	CHECK_EQ(begin(&at), 0);
	mmc_placement_resume(&at.placement, 0);
	CHECK(at.queue->cursor.loops);
	close_stage(&at);
}

static void nothing_aims_beyond_the_end(void)
{
	struct stage at;

	open_stage(&at);
	CHECK_EQ(begin(&at), 0);
	at.predictions.seen = NCHUNKS - 1;
	mmc_placement_resume(&at.placement, 0);
	CHECK_EQ(post(&at, 0), NCHUNKS - 1);
	CHECK_EQ(post(&at, 1), NCHUNKS);
	close_stage(&at);
}

/*
 * Chunk 0 is lost, so chunk 1 arrives in its place, and chunk 2 in the place of
 * chunk 1, whose payload waits until that place is free.
 */
static void the_mispredicted_are_evacuated(void)
{
	struct stage at;
	uint64_t cookie = 0;

	open_stage(&at);
	CHECK_EQ(begin(&at), 0);
	mmc_placement_resume(&at.placement, 0);
	CHECK_EQ(post(&at, 0), 0);
	CHECK_EQ(post(&at, 1), 1);
	CHECK(come(&at, 0, 1) == at.staging[0]);
	CHECK_EQ(at.staging[0][0], 2);
	CHECK(defer(&at, 1));
	CHECK_EQ(post(&at, 2), NCHUNKS);
	CHECK_EQ(mmc_placement_plugs(at.queue), 1);
	CHECK(!mmc_placement_take_settled(&at.placement, &cookie));

	CHECK(come(&at, 1, 2) == at.staging[1]);
	CHECK_EQ(at.staging[1][0], 3);
	CHECK_EQ(at.base[1 * CHUNK_BYTES], 2);
	mmc_placement_resume(&at.placement, 0);
	CHECK_EQ(post(&at, 3), NCHUNKS);
	CHECK(mmc_placement_take_settled(&at.placement, &cookie));
	CHECK_EQ(cookie, 1);
	CHECK_EQ(at.placement.evacuated, 2);
	CHECK_EQ(mmc_placement_plugs(at.queue), 0);

	/* The two posted slots that aim at nothing will take chunks 3 and 4. */
	at.predictions.seen = 3;
	mmc_placement_resume(&at.placement, 0);
	CHECK_EQ(post(&at, 4), 5);
	CHECK(!defer(&at, 2));
	close_stage(&at);
}

/* At the end, deferred payloads are put in place, and no receive aims. */
static void the_end_lifts_all(void)
{
	struct stage at;
	uint64_t cookie;

	open_stage(&at);
	CHECK_EQ(begin(&at), 0);
	mmc_placement_resume(&at.placement, 0);
	CHECK_EQ(post(&at, 0), 0);
	CHECK(defer(&at, 0));
	CHECK_EQ(at.base[0], 0);
	mmc_placement_end(&at.placement, false);
	CHECK_EQ(at.base[0], 1);
	CHECK(mmc_placement_take_settled(&at.placement, &cookie));
	CHECK_EQ(at.queue->naimed, 0);
	CHECK(at.queue->slots[0].aim.place == NULL);
	CHECK(!defer(&at, 0));
	CHECK_EQ(begin(&at), 0);
	close_stage(&at);
}

/* A chunk stays in its place only if its header and its source are as expected. */
static void foreign_datagrams_are_evacuated(void)
{
	const struct mmc_header good = {
		.channel = CHANNEL,
		.epoch = EPOCH,
		.index = 0,
	};

	for (int flaw = 0; flaw < 6; flaw++) {
		struct mmc_header header = good;
		uint32_t nbytes = MMC_HEADER_BYTES + CHUNK_BYTES;
		uint8_t head[MMC_HEADER_BYTES];
		const uint8_t *body;
		struct stage at;

		header.channel += (uint64_t)(flaw == 1) << 16;
		header.epoch += flaw == 2;
		header.index += flaw == 3;
		nbytes -= flaw == 4;
		open_stage(&at);
		CHECK_EQ(begin(&at), 0);
		mmc_placement_resume(&at.placement, 0);
		CHECK_EQ(post(&at, 0), 0);
		mmc_header_encode(head, &header, nbytes, MMC_CHECKSUM_HEADER);
		body = mmc_placement_complete(&at.placement, 0, 0, flaw == 5,
					      head, nbytes);
		CHECK(body == (flaw ? at.staging[0] : at.base));
		CHECK_EQ(at.placement.evacuated, flaw != 0);
		CHECK_EQ(at.queue->paused, flaw != 0);
		close_stage(&at);
	}
}

/* Direct placement needs a queue for each subgroup, and one for control. */
static void shared_queues_aim_at_nothing(void)
{
	struct stage at;

	open_stage(&at);
	CHECK_EQ(begin_with(&at, 2), -MMC_EINVAL);
	CHECK_EQ(post(&at, 0), NCHUNKS);
	close_stage(&at);
}

CHECK_MAIN(CHECK_TEST(shared_queues_aim_at_nothing),
	   CHECK_TEST(what_was_posted_before_counts),
	   CHECK_TEST(nothing_aims_at_what_is_here_already),
	   CHECK_TEST(slots_are_posted_in_batches),
	   CHECK_TEST(own_multicast_may_come_back),
	   CHECK_TEST(nothing_aims_beyond_the_end),
	   CHECK_TEST(the_mispredicted_are_evacuated),
	   CHECK_TEST(the_end_lifts_all),
	   CHECK_TEST(foreign_datagrams_are_evacuated))
