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
	CHECK_EQ(team_count(MMC_COUNT_RX_CORRUPT_DATAGRAMS), HEAD_BYTES + 4);
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

/* The pool for early chunks is bounded; chunks beyond it are counted only. */
static void the_pool_is_bounded(void)
{
	uint32_t nslots;

	hub_open(&eager);
	nslots = hub[0].stream->parking.nslots;
	for (uint32_t i = 0; i < nslots + 5; i++)
		receive_chunk(1, 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_PARKED_DATAGRAMS), nslots);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_UNPARKED_DATAGRAMS), 5);
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

/* A control message that cannot be decoded is counted as corrupt. */
static void broken_messages(void)
{
	hub_open(&eager);
	receive(1, make(HUB_CHANNEL, 1, MMC_INDEX_CONTROL | 999, 10));
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_CORRUPT_DATAGRAMS), 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_CONTROL_DATAGRAMS), 1);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(what_belongs_to_no_stream),
	   CHECK_TEST(early_chunks_are_parked), CHECK_TEST(the_pool_is_bounded),
	   CHECK_TEST(chunks_are_placed_once),
	   CHECK_TEST(late_chunks_are_duplicates), CHECK_TEST(broken_messages))
