/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads that arrive directly in their places, or in those of others. */
#include "verbs_team.h"

#include "predictions.h"

#define CHANNEL (UINT64_C(0x1234) << 16)
#define EPOCH 9
#define NCHUNKS 12 /* of each rank */
#define RECEIVES 8
#define FIRST RECEIVES /* the first chunk that arrives in its place */
#define OTHER_BYTES 100

/* Rank 0's side of an operation in which rank 1 sends. */
struct gathering {
	struct team team;
	struct mmc_endpoint *endpoint;
	uint8_t *base;
	size_t nbytes;
	struct predictions predictions;
	struct mmc_region region;
	struct mmc_event events[64];
	int count;
};

static uint8_t *place_of(const struct gathering *at, uint32_t index)
{
	return at->base + (size_t)(NCHUNKS + index) * CHUNK_BYTES;
}

static uint8_t byte_of(uint32_t index)
{
	return (uint8_t)(0x40 + index);
}

static void open_gathering(struct gathering *at)
{
	struct mmc_team_options options = team_options(2);

	memset(at, 0, sizeof(*at));
	options.subgroups = 3; /* the last is for control */
	options.receives = RECEIVES;
	options.zero_copy = 1;
	team_open(&at->team, &options);
	team_connect(&at->team);
	at->endpoint = at->team.endpoints[0];
	at->nbytes = (size_t)2 * NCHUNKS * CHUNK_BYTES;
	at->base = aligned_alloc(4096, (at->nbytes + 4095) / 4096 * 4096);
	memset(at->base, 0, at->nbytes);
	at->predictions.base = place_of(at, 0);
	at->predictions.nbytes = CHUNK_BYTES;
	at->predictions.count = NCHUNKS;
	at->predictions.subgroup = 1;
	for (uint32_t i = 0; i < NCHUNKS; i++)
		at->predictions.sources[i] = 1;
	succeed(at->endpoint->driver->register_memory(at->endpoint, at->base,
						      at->nbytes, &at->region));
}

static void begin(struct gathering *at)
{
	const struct mmc_header header = { .channel = CHANNEL, .epoch = EPOCH };
	struct mmc_predictor predictor =
		predictions_predictor(&at->predictions, &header, 2);

	predictor.region = at->region;
	succeed(at->endpoint->driver->begin_placement(at->endpoint,
						      &predictor));
}

static void close_gathering(struct gathering *at)
{
	at->endpoint->driver->end_placement(at->endpoint, true);
	at->endpoint->driver->deregister_memory(at->endpoint, &at->region);
	team_close(&at->team);
	free(at->base);
}

/* Multicasts chunk `index` of rank 1, in `epoch`. */
static void send_chunk(struct gathering *at, uint32_t epoch, uint32_t index,
		       uint32_t nbytes)
{
	struct mmc_endpoint *sender = at->team.endpoints[1];
	struct mmc_event events[16];
	static uint8_t body[CHUNK_BYTES];
	uint8_t head[MMC_HEADER_BYTES];
	const struct mmc_header header = {
		.channel = CHANNEL,
		.epoch = epoch,
		.index = index,
	};
	const struct mmc_parcel parcel = {
		.head = head,
		.head_bytes = sizeof(head),
		.body = body,
		.body_bytes = nbytes,
		.peer = MMC_PEER_ALL,
		.subgroup = 1,
	};

	memset(body, byte_of(index), nbytes);
	mmc_header_encode(head, &header, MMC_HEADER_BYTES + nbytes,
			  MMC_CHECKSUM_HEADER);
	CHECK_EQ(sender->driver->send(sender, &parcel, 1), 0);
	while (sender->driver->poll(sender, events, 16) > 0)
		;
}

/* Receives chunk `index`, and notes it as seen; returns its payload. */
static const uint8_t *take(struct gathering *at, uint32_t index)
{
	struct mmc_event *event = &at->events[0];

	at->count = receive(at->endpoint, at->events, 1, PATIENCE_MS);
	if (!CHECK_EQ(at->count, 1) ||
	    !CHECK_EQ(event->kind, MMC_EVENT_DATAGRAM))
		exit(1);
	CHECK_EQ(index_of(event), index);
	if (index >= at->predictions.seen)
		at->predictions.seen = index + 1;
	return event->body;
}

/* Uses up the ring's first receives, which were posted too early to aim at places. */
static void pass_ring(struct gathering *at)
{
	for (uint32_t i = 0; i < FIRST; i++) {
		send_chunk(at, EPOCH, i, CHUNK_BYTES);
		CHECK(take(at, i) != place_of(at, i));
	}
}

static bool is_filled(const uint8_t *bytes, uint8_t byte)
{
	return bytes[0] == byte &&
	       memcmp(bytes, bytes + 1, CHUNK_BYTES - 1) == 0;
}

static void predicted_payloads_come_to_their_places(void)
{
	struct gathering at;

	open_gathering(&at);
	begin(&at);
	pass_ring(&at);
	for (uint32_t i = FIRST; i < NCHUNKS; i++) {
		send_chunk(&at, EPOCH, i, CHUNK_BYTES);
		CHECK(take(&at, i) == place_of(&at, i));
		CHECK(is_filled(place_of(&at, i), byte_of(i)));
	}
	CHECK_EQ(at.endpoint->evacuated, 0);
	close_gathering(&at);
}

/* Chunk FIRST is lost, so later chunks arrive in their predecessors' places. */
static void after_a_loss_all_are_evacuated(void)
{
	struct gathering at;
	uint32_t ndeferred = 0;
	uint32_t ntaken = 0;

	open_gathering(&at);
	begin(&at);
	pass_ring(&at);
	for (uint32_t i = FIRST + 1; i < NCHUNKS; i++)
		send_chunk(&at, EPOCH, i, CHUNK_BYTES);
	while (ntaken < NCHUNKS - FIRST - 1 || ndeferred > 0) {
		const struct mmc_event *event = &at.events[0];
		uint32_t i;

		if (!CHECK_EQ(receive(at.endpoint, at.events, 1, PATIENCE_MS),
			      1))
			exit(1);
		if (event->kind == MMC_EVENT_PLACED) {
			ndeferred--;
			continue;
		}
		i = index_of(event);
		CHECK_EQ(i, FIRST + 1 + ntaken++);
		CHECK(event->body != place_of(&at, i));
		CHECK(is_filled(event->body, byte_of(i)));
		ndeferred += at.endpoint->driver->place(
				     at.endpoint, place_of(&at, i), event, 1,
				     event->nbytes - CHUNK_BYTES,
				     i) == -MMC_EAGAIN;
	}
	CHECK(at.endpoint->evacuated > 0);
	for (uint32_t i = FIRST + 1; i < NCHUNKS; i++)
		CHECK(is_filled(place_of(&at, i), byte_of(i)));
	close_gathering(&at);
}

/* Foreign datagrams may arrive in a place, but do not stay there. */
static void foreign_datagrams_are_evacuated(void)
{
	struct gathering at;
	const uint8_t *body;

	open_gathering(&at);
	begin(&at);
	pass_ring(&at);
	send_chunk(&at, EPOCH - 1, FIRST, CHUNK_BYTES);
	body = take(&at, FIRST);
	CHECK(body != place_of(&at, FIRST));
	at.predictions.seen = FIRST;
	send_chunk(&at, EPOCH, FIRST, OTHER_BYTES);
	body = take(&at, FIRST);
	CHECK(body != place_of(&at, FIRST) && body[0] == byte_of(FIRST));
	CHECK_EQ(at.endpoint->evacuated, 2);
	close_gathering(&at);
}

/* A place that a posted receive may fill is written by nothing else. */
static void what_comes_another_way_waits(void)
{
	static uint8_t repair[CHUNK_BYTES];
	const struct mmc_event event = {
		.body = repair,
		.nbytes = CHUNK_BYTES,
	};
	struct gathering at;

	open_gathering(&at);
	begin(&at);
	pass_ring(&at);
	memset(repair, byte_of(FIRST), sizeof(repair));
	CHECK_EQ(at.endpoint->driver->place(at.endpoint, place_of(&at, FIRST),
					    &event, 1, 0, 77),
		 -MMC_EAGAIN);
	CHECK_EQ(place_of(&at, FIRST)[0], 0);
	at.count = receive(at.endpoint, at.events, 64, PATIENCE_MS);
	CHECK_EQ(at.count, 1);
	CHECK_EQ(at.events[0].kind, MMC_EVENT_PLACED);
	CHECK_EQ(at.events[0].cookie, 77);
	CHECK(is_filled(place_of(&at, FIRST), byte_of(FIRST)));
	close_gathering(&at);
}

/* After end_placement() chunks still arrive, but not in any place. */
static void nothing_comes_to_a_place_after_release(void)
{
	struct gathering at;

	open_gathering(&at);
	begin(&at);
	pass_ring(&at);
	at.endpoint->driver->end_placement(at.endpoint, false);
	memset(at.base, 0xd1, at.nbytes);
	for (uint32_t i = FIRST; i < NCHUNKS; i++) {
		send_chunk(&at, EPOCH, i, CHUNK_BYTES);
		CHECK(is_filled(take(&at, i), byte_of(i)));
	}
	for (size_t i = 0; i < at.nbytes; i++)
		if (!CHECK_EQ(at.base[i], 0xd1))
			break;
	/* In the next operation chunks arrive in their places again. */
	at.predictions.seen = 0;
	begin(&at);
	for (uint32_t i = 0; i < FIRST; i++) {
		send_chunk(&at, EPOCH, i, CHUNK_BYTES);
		take(&at, i);
	}
	send_chunk(&at, EPOCH, FIRST, CHUNK_BYTES);
	CHECK(take(&at, FIRST) == place_of(&at, FIRST));
	close_gathering(&at);
}

static int refuse(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask)
{
	(void)qp, (void)attributes, (void)mask;
	return EIO;
}

/* If a queue cannot be reset, arrivals are dropped and the engine is told. */
static void a_device_may_refuse_to_let_go(void)
{
	int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int) =
		mmc_ibv.modify_qp;
	struct gathering at;
	int rv;

	open_gathering(&at);
	begin(&at);
	pass_ring(&at);
	mmc_ibv.modify_qp = refuse;
	rv = at.endpoint->driver->end_placement(at.endpoint, true);
	mmc_ibv.modify_qp = modify;
	CHECK_EQ(rv, -MMC_EIO);
	send_chunk(&at, EPOCH, FIRST, CHUNK_BYTES);
	at.count = receive(at.endpoint, at.events, 64, PATIENCE_MS);
	CHECK_EQ(at.count, 1);
	CHECK_EQ(at.events[0].kind, MMC_EVENT_BROKEN);
	CHECK_EQ(at.events[0].error, -MMC_EIO);
	CHECK(strstr(mmc_last_error(), "cannot reset") != NULL);
	CHECK_EQ(receive(at.endpoint, at.events, 64, QUIET_MS), 0);
	close_gathering(&at);
}

CHECK_MAIN(CHECK_TEST(predicted_payloads_come_to_their_places),
	   CHECK_TEST(after_a_loss_all_are_evacuated),
	   CHECK_TEST(foreign_datagrams_are_evacuated),
	   CHECK_TEST(what_comes_another_way_waits),
	   CHECK_TEST(nothing_comes_to_a_place_after_release),
	   CHECK_TEST(a_device_may_refuse_to_let_go))
