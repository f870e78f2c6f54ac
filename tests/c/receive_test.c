/* SPDX-License-Identifier: BSD-3-Clause */
/* Received datagrams are counted and dropped, kept for later, or placed. */
#include "engine/receive.h"

#include "engine/crc32c.h"
#include "hub.h"

#define HEAD_BYTES (MMC_HEADER_BYTES + MMC_CRC_BYTES)

/* Operations are eager, so their chunks need no entry barrier. */
static const struct hub_options eager = {
	.nranks = 2,
	.nplayed = 1,
	.checksum = MMC_CHECKSUM_FULL,
	.eager_bytes = 1 << 16,
};

static uint8_t recv[2 * HUB_CHUNK_BYTES];
static uint8_t datagram[HEAD_BYTES + HUB_CHUNK_BYTES + 1];

/* Makes a datagram with a payload of twos. Returns its length. */
static uint32_t make(uint64_t channel, uint32_t epoch, uint32_t index,
		     uint32_t payload_bytes)
{
	const struct mmc_header header = {
		.channel = channel,
		.epoch = epoch,
		.index = index,
	};
	uint32_t nbytes = HEAD_BYTES + payload_bytes;
	uint32_t crc;

	memset(datagram + HEAD_BYTES, 2, payload_bytes);
	mmc_header_encode(datagram, &header, nbytes, MMC_CHECKSUM_FULL);
	crc = mmc_crc32c(0, datagram, MMC_HEADER_BYTES);
	crc = mmc_crc32c(crc, datagram + HEAD_BYTES, payload_bytes);
	mmc_put_u32(datagram + MMC_HEADER_BYTES, crc);
	return nbytes;
}

static void receive(uint32_t source, uint32_t nbytes)
{
	hub_deliver(source, 0, datagram, nbytes);
	hub_settle();
}

/* Receives chunk `index` of an epoch of the stream from rank 1. */
static void receive_chunk(uint32_t epoch, uint32_t index)
{
	receive(1, make(HUB_CHANNEL, epoch, index, HUB_CHUNK_BYTES));
}

static uint64_t team_count(enum mmc_counter counter)
{
	return hub[0].team->counters.value[counter];
}

/*
 * Datagrams of strangers, of other channels or with damaged bytes belong to no
 * stream: the team counts them.
 */
static void what_belongs_to_no_stream(void)
{
	uint32_t nbytes;

	hub_open(&eager);
	nbytes = make(HUB_CHANNEL, 1, 1, HUB_CHUNK_BYTES);
	receive(MMC_PEER_UNKNOWN, nbytes);
	receive(2, nbytes);
	CHECK_EQ(team_count(MMC_COUNT_RX_FOREIGN_DATAGRAMS), 2);
	receive(1, make(HUB_CHANNEL << 1, 1, 1, HUB_CHUNK_BYTES));
	CHECK_EQ(team_count(MMC_COUNT_RX_FOREIGN_DATAGRAMS), 3);
	CHECK_EQ(team_count(MMC_COUNT_RX_CORRUPT_DATAGRAMS), 0);
	for (uint32_t at = 0; at < HEAD_BYTES + 3; at++) {
		nbytes = make(HUB_CHANNEL, 1, 1, HUB_CHUNK_BYTES);
		datagram[at] ^= 1;
		receive(1, nbytes);
		CHECK_EQ(team_count(MMC_COUNT_RX_CORRUPT_DATAGRAMS), at + 1);
	}
	receive(1, HEAD_BYTES - 1);
	CHECK_EQ(team_count(MMC_COUNT_RX_CORRUPT_DATAGRAMS), HEAD_BYTES + 3);
	CHECK_EQ(team_count(MMC_COUNT_RX_MALFORMED_DATAGRAMS), 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_MULTICAST_DATAGRAMS), 0);
	hub_close();
}

/* A chunk that arrives before its operation has started is kept for it. */
static void early_chunks_are_parked(void)
{
	struct mmc_request *request;

	hub_open(&eager);
	receive_chunk(1, 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_PARKED_DATAGRAMS), 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_MULTICAST_DATAGRAMS), 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_MULTICAST_BYTES),
		 HEAD_BYTES + HUB_CHUNK_BYTES);
	receive_chunk(1 + MMC_EPOCHS_ACTIVE_MAX, 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_FOREIGN_DATAGRAMS), 1);
	request = hub_gather(0, recv, HUB_CHUNK_BYTES);
	hub_settle();
	hub_check(recv, HUB_CHUNK_BYTES);
	mmc_request_cancel(request);
	mmc_request_free(request);
	hub_close();
}

/*
 * The pool for early chunks is bounded for each rank. Chunks beyond that are counted
 * only, and so are those that repeat one that is there.
 */
static void the_pool_is_bounded(void)
{
	hub_open(&eager);
	for (uint32_t i = 0; i < MMC_PARKED_EACH_MAX + 5; i++)
		receive_chunk(1, i);
	receive_chunk(1, 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_PARKED_DATAGRAMS),
		 MMC_PARKED_EACH_MAX);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_UNPARKED_DATAGRAMS), 5);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_DUPLICATE_CHUNKS), 1);
	hub_close();
}

/* A chunk is placed once, if its sender owns it and its length is right. */
static void chunks_are_placed_once(void)
{
	struct mmc_request *request;

	hub_open(&eager);
	request = hub_gather(0, recv, HUB_CHUNK_BYTES);
	receive(1, make(HUB_CHANNEL, 1, 0, HUB_CHUNK_BYTES));
	receive(1, make(HUB_CHANNEL, 1, 2, HUB_CHUNK_BYTES));
	receive(1, make(HUB_CHANNEL, 1, 1, HUB_CHUNK_BYTES - 1));
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_FOREIGN_DATAGRAMS), 3);
	receive_chunk(1, 1);
	hub_check(recv, HUB_CHUNK_BYTES);
	memset(recv + HUB_CHUNK_BYTES, 7, HUB_CHUNK_BYTES);
	receive_chunk(1, 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_DUPLICATE_CHUNKS), 1);
	CHECK_EQ(recv[HUB_CHUNK_BYTES], 7);
	mmc_request_cancel(request);
	mmc_request_free(request);
	hub_close();
}

/* A chunk that arrives after its operation has closed counts as a duplicate. */
static void late_chunks_are_duplicates(void)
{
	hub_open(&eager);
	receive_chunk(0, 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_DUPLICATE_CHUNKS), 1);
	receive_chunk(0, 1 | MMC_INDEX_REPAIR);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_DUPLICATE_CHUNKS), 2);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_REPAIR_DATAGRAMS), 1);
	hub_close();
}

/* A control message that cannot be decoded is counted as malformed. */
static void broken_messages(void)
{
	hub_open(&eager);
	receive(1, make(HUB_CHANNEL, 1, MMC_INDEX_CONTROL | 999, 10));
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_MALFORMED_DATAGRAMS), 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_CONTROL_DATAGRAMS), 1);
	hub_close();
}

#define RUN_CHUNKS 6
#define RUN_BLOCK_BYTES (RUN_CHUNKS * HUB_CHUNK_BYTES - 10)

static uint8_t gathered[2 * RUN_BLOCK_BYTES];
static uint8_t datagrams[RUN_CHUNKS][HEAD_BYTES + HUB_CHUNK_BYTES + 1];

/* Makes the datagrams of rank 1's block, and the events that bring them. */
static void make_run(struct mmc_event *events)
{
	for (uint32_t i = 0; i < RUN_CHUNKS; i++) {
		uint32_t short_bytes = i == RUN_CHUNKS - 1 ? 10 : 0;
		uint32_t nbytes = make(HUB_CHANNEL, 1, RUN_CHUNKS + i,
				       HUB_CHUNK_BYTES - short_bytes);

		memcpy(datagrams[i], datagram, nbytes);
		events[i] = (struct mmc_event){
			.kind = MMC_EVENT_DATAGRAM,
			.bytes = datagrams[i],
			.nbytes = nbytes,
			.source = 1,
		};
	}
}

/* Has rank 0 receive all events; returns in how many runs. */
static unsigned receive_all(const struct mmc_event *events)
{
	unsigned nruns = 0;

	for (unsigned i = 0; i < RUN_CHUNKS; nruns++)
		i += mmc_team_receive(hub[0].team, &events[i], RUN_CHUNKS - i,
				      hub_now_ns);
	return nruns;
}

/*
 * Chunks that were received together are taken in together. One that is damaged, of
 * another rank, cut, or out of order ends the run, and costs no other chunk.
 */
static void runs_end_at_what_is_wrong(void)
{
	enum { WELL, DAMAGED, STRANGE, CUT, SKIPPED, REPEATED, NKINDS };
	static const unsigned nruns[NKINDS] = { 1, 3, 3, 3, 2, 3 };

	for (unsigned kind = WELL; kind < NKINDS; kind++) {
		struct mmc_event events[RUN_CHUNKS];
		unsigned nplaced = RUN_CHUNKS - (kind != WELL);
		struct mmc_request *request;

		hub_open(&eager);
		memset(gathered, 0, sizeof(gathered));
		request = hub_gather(0, gathered, RUN_BLOCK_BYTES);
		make_run(events);
		if (kind == DAMAGED)
			datagrams[2][HEAD_BYTES + 5] ^= 1;
		if (kind == STRANGE)
			events[2].source = 0;
		if (kind == CUT)
			events[2].nbytes--;
		if (kind == SKIPPED)
			memmove(&events[2], &events[3], 3 * sizeof(*events));
		if (kind == REPEATED)
			events[2] = events[1];
		CHECK_EQ(receive_all(events), nruns[kind] + (kind == SKIPPED));
		CHECK_EQ(mmc_op_missing_chunks(request->op),
			 RUN_CHUNKS - nplaced);
		if (kind == WELL)
			hub_check(gathered, RUN_BLOCK_BYTES);
		mmc_request_cancel(request);
		mmc_request_free(request);
		hub_close();
	}
}

static int begin_placement(struct mmc_endpoint *endpoint,
			   const struct mmc_predictor *predictor)
{
	(void)endpoint;
	(void)predictor;
	return -MMC_ENODEV;
}

/* Chunks of a run that the device has put in their places are counted, not copied. */
static void chunks_in_place_stay(void)
{
	struct mmc_driver driver = hub_driver;

	driver.begin_placement = begin_placement;
	for (uint32_t direct = 0; direct < 1 << RUN_CHUNKS; direct += 7) {
		struct mmc_event events[RUN_CHUNKS];
		struct mmc_request *request;

		hub_open(&eager);
		hub[0].endpoint.driver = &driver;
		memset(gathered, 0, sizeof(gathered));
		request = hub_gather(0, gathered, RUN_BLOCK_BYTES);
		make_run(events);
		for (uint32_t i = 0; i < RUN_CHUNKS; i++) {
			uint8_t *place = gathered + RUN_BLOCK_BYTES +
					 i * HUB_CHUNK_BYTES;

			if ((direct >> i & 1) == 0)
				continue;
			memcpy(place, events[i].bytes + HEAD_BYTES,
			       events[i].nbytes - HEAD_BYTES);
			events[i].body = place;
		}
		CHECK_EQ(receive_all(events), 1);
		CHECK_EQ(mmc_op_missing_chunks(request->op), 0);
		CHECK_EQ(hub_count(0, MMC_COUNT_ZERO_COPY_CHUNKS),
			 __builtin_popcount(direct));
		hub_check(gathered, RUN_BLOCK_BYTES);
		mmc_request_cancel(request);
		mmc_request_free(request);
		hub_close();
	}
}

CHECK_MAIN(CHECK_TEST(runs_end_at_what_is_wrong),
	   CHECK_TEST(chunks_in_place_stay),
	   CHECK_TEST(what_belongs_to_no_stream),
	   CHECK_TEST(early_chunks_are_parked), CHECK_TEST(the_pool_is_bounded),
	   CHECK_TEST(chunks_are_placed_once),
	   CHECK_TEST(late_chunks_are_duplicates), CHECK_TEST(broken_messages))
