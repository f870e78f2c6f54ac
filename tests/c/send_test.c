/* SPDX-License-Identifier: BSD-3-Clause */
/* Sent datagrams: their heads, their payloads, and where these come from. */
#include "engine/send.h"

#include "engine/crc32c.h"
#include "hub.h"

#define TAIL_BYTES 1

static uint8_t recv[2][2 * (HUB_CHUNK_BYTES + TAIL_BYTES)];

/* Checks the last datagram of rank 0 as its receivers do; returns its header. */
static struct mmc_header check_sent(enum mmc_checksum checksum)
{
	uint32_t head_bytes = hub[0].sent.head_bytes;
	uint32_t nbytes = head_bytes + hub[0].sent.body_bytes;
	const uint8_t *bytes = hub[0].sent_bytes;
	struct mmc_header header = { 0 };
	uint32_t crc;

	CHECK_EQ(mmc_header_decode(&header, bytes, nbytes, checksum), 0);
	CHECK_EQ(header.channel, HUB_CHANNEL);
	if (checksum != MMC_CHECKSUM_FULL) {
		CHECK_EQ(head_bytes, MMC_HEADER_BYTES);
		return header;
	}
	CHECK_EQ(head_bytes, MMC_HEADER_BYTES + MMC_CRC_BYTES);
	crc = mmc_crc32c(0, bytes, MMC_HEADER_BYTES);
	crc = mmc_crc32c(crc, bytes + head_bytes, nbytes - head_bytes);
	CHECK_EQ(mmc_get_u32(bytes + MMC_HEADER_BYTES), crc);
	return header;
}

/* Returns an action of the core that sends both chunks of rank 0's block. */
static struct mmc_action send_action(uint32_t peer, bool repair)
{
	return (struct mmc_action){
		.kind = MMC_ACTION_SEND,
		.peer = peer,
		.repair = repair,
		.run = { .first = 0, .count = 2 },
	};
}

/* Each chunk leaves with its header, checksum and payload, and is counted. */
static void heads_and_payloads(void)
{
	for (uint32_t sum = 0; sum <= MMC_CHECKSUM_FULL; sum++) {
		const struct mmc_action first =
			send_action(MMC_PEER_ALL, false);
		const struct mmc_action repair = send_action(1, true);
		struct mmc_request *request;
		struct mmc_header header;

		hub_open(&(struct hub_options){
			.nranks = 2,
			.nplayed = 1,
			.checksum = sum,
		});
		request = hub_gather(0, recv[0], HUB_CHUNK_BYTES + TAIL_BYTES);
		CHECK_EQ(mmc_request_send(request, &first), 0);
		header = check_sent(sum);
		CHECK_EQ(header.epoch, 1);
		CHECK_EQ(header.index, 1);
		CHECK_EQ(hub[0].sent.peer, MMC_PEER_ALL);
		CHECK_EQ(hub[0].sent.body_bytes, TAIL_BYTES);
		CHECK(hub[0].sent.body == recv[0] + HUB_CHUNK_BYTES);
		CHECK_EQ(hub_count(0, MMC_COUNT_TX_MULTICAST_DATAGRAMS), 2);
		CHECK_EQ(hub_count(0, MMC_COUNT_TX_MULTICAST_BYTES),
			 2 * hub[0].sent.head_bytes + HUB_CHUNK_BYTES +
				 TAIL_BYTES);

		CHECK_EQ(mmc_request_send(request, &repair), 0);
		header = check_sent(sum);
		CHECK_EQ(header.index, 1 | MMC_INDEX_REPAIR);
		CHECK_EQ(hub[0].sent.peer, 1);
		CHECK_EQ(hub_count(0, MMC_COUNT_TX_REPAIR_DATAGRAMS), 2);
		CHECK_EQ(hub_count(0, MMC_COUNT_TX_MULTICAST_DATAGRAMS), 2);
		mmc_request_cancel(request);
		mmc_request_free(request);
		hub_close();
	}
}

/* Once the user has the buffers back, chunks are sent from a copy. */
static void repairs_come_from_the_copy(void)
{
	const struct mmc_action repair = send_action(1, true);
	struct mmc_request *requests[2];

	hub_open(&(struct hub_options){ .nranks = 2 });
	for (uint32_t r = 0; r < 2; r++)
		requests[r] =
			hub_gather(r, recv[r], HUB_CHUNK_BYTES + TAIL_BYTES);
	CHECK(hub_complete(requests[0], MMC_S_NS));
	if (CHECK(requests[0]->op != NULL) &&
	    CHECK(requests[0]->copy != NULL)) {
		memset(recv[0], 0xee, sizeof(recv[0]));
		CHECK_EQ(mmc_request_send(requests[0], &repair), 0);
		CHECK_EQ(hub[0].sent_bytes[MMC_HEADER_BYTES], 1);
		CHECK(hub[0].sent.body ==
		      requests[0]->copy->bytes + HUB_CHUNK_BYTES);
	}
	for (uint32_t r = 0; r < 2; r++) {
		CHECK(hub_complete(requests[r], MMC_S_NS));
		mmc_request_free(requests[r]);
	}
	hub_close();
}

/* Control goes to the control address of one rank, or by multicast to all. */
static void control(void)
{
	uint8_t bytes[MMC_HEADER_BYTES + 10];
	const struct mmc_header header = {
		.channel = HUB_CHANNEL,
		.epoch = 3,
		.index = MMC_INDEX_CONTROL,
	};
	const struct mmc_letter letter = {
		.bytes = bytes,
		.nbytes = sizeof(bytes),
	};

	hub_open(&(struct hub_options){ .nranks = 2, .nplayed = 1 });
	memset(bytes, 0, sizeof(bytes));
	mmc_header_encode(bytes, &header, sizeof(bytes), MMC_CHECKSUM_OFF);
	CHECK_EQ(mmc_stream_send_control(hub[0].stream, 1, &letter, 1), 0);
	CHECK(hub[0].sent.control);
	CHECK_EQ(hub[0].sent.peer, 1);
	CHECK_EQ(check_sent(MMC_CHECKSUM_OFF).epoch, 3);
	CHECK_EQ(hub_count(0, MMC_COUNT_TX_CONTROL_DATAGRAMS), 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_TX_CONTROL_BYTES), sizeof(bytes));
	hub[0].send_rv = -MMC_EIO;
	CHECK_EQ(mmc_stream_send_control(hub[0].stream, 1, &letter, 1),
		 -MMC_EIO);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(heads_and_payloads),
	   CHECK_TEST(repairs_come_from_the_copy), CHECK_TEST(control))
