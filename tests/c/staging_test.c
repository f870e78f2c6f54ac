/* SPDX-License-Identifier: BSD-3-Clause */
/* Received trains are taken in order, piece by piece, from as few slots as possible. */
#include "check.h"

#include <netinet/udp.h>

#include "drivers/udp/staging.h"
#include "support/bits.h"
#include "support/prng.h"

#define DATAGRAM_BYTES 1000
#define TRAIN_DATAGRAMS 20

/* A socket of loopback that sends trains to another, and what that has received. */
struct pair {
	int sender;
	int receiver;
	uint32_t nsent; /* datagrams so far */
	uint32_t ntaken;
	struct mmc_udp_staging staging;
};

static void pair_open(struct pair *pair)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	int one = 1, length = DATAGRAM_BYTES;

	*pair = (struct pair){
		.sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
		.receiver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
	};
	CHECK_EQ(bind(pair->receiver, (struct sockaddr *)&address, size), 0);
	CHECK_EQ(getsockname(pair->receiver, (struct sockaddr *)&address,
			     &size),
		 0);
	CHECK_EQ(connect(pair->sender, (struct sockaddr *)&address, size), 0);
	CHECK_EQ(setsockopt(pair->sender, IPPROTO_UDP, UDP_SEGMENT, &length,
			    sizeof(length)),
		 0);
	CHECK_EQ(setsockopt(pair->receiver, IPPROTO_UDP, UDP_GRO, &one,
			    sizeof(one)),
		 0);
	CHECK_EQ(mmc_udp_staging_init(&pair->staging, MMC_UDP_TRAIN_BYTES), 0);
}

static void pair_close(struct pair *pair)
{
	mmc_udp_staging_destroy(&pair->staging);
	close(pair->sender);
	close(pair->receiver);
}

/* Sends a train, each of whose datagrams is filled with its number. */
static void send_train(struct pair *pair)
{
	static uint8_t bytes[TRAIN_DATAGRAMS * DATAGRAM_BYTES];

	for (unsigned i = 0; i < TRAIN_DATAGRAMS; i++)
		memset(bytes + (size_t)i * DATAGRAM_BYTES,
		       (int)(pair->nsent++ % 251), DATAGRAM_BYTES);
	CHECK_EQ(send(pair->sender, bytes, sizeof(bytes), 0), sizeof(bytes));
}

/*
 * Takes up to `nmax` datagrams, which must be the next ones, and marks the slots that
 * they lie in. Returns how many there were.
 */
static unsigned take(struct pair *pair, unsigned nmax, uint64_t *slots)
{
	struct mmc_udp_staging *staging = &pair->staging;
	struct mmc_udp_train train;
	unsigned n = 0;

	while (n < nmax && mmc_udp_staging_look(staging, &train)) {
		uint32_t rest = (nmax - n) * DATAGRAM_BYTES;
		uint32_t nbytes = mmc_min_u32(train.nbytes, rest);

		CHECK_EQ(train.length_bytes, DATAGRAM_BYTES);
		for (uint32_t at = 0; at < nbytes; at += DATAGRAM_BYTES, n++) {
			uint32_t number = pair->ntaken++ % 251;

			CHECK_EQ(train.bytes[at], number);
			CHECK_EQ(train.bytes[at + DATAGRAM_BYTES - 1], number);
		}
		*slots |= UINT64_C(1) << (train.bytes - staging->memory) /
						 staging->slot_bytes;
		mmc_udp_staging_take(staging, &train, nbytes);
	}
	return n;
}

/* While the rest of a train is always held, the same few slots are used all the time. */
static void slots_are_used_again(void)
{
	static struct pair pair;
	uint64_t slots = 0;
	bool more;

	pair_open(&pair);
	send_train(&pair);
	CHECK_EQ(mmc_udp_staging_receive(&pair.staging, pair.receiver, 1,
					 &more),
		 1);
	for (unsigned i = 0; i < 1000; i++) {
		CHECK_EQ(take(&pair, TRAIN_DATAGRAMS - 1, &slots),
			 TRAIN_DATAGRAMS - 1);
		send_train(&pair);
		mmc_udp_staging_reuse(&pair.staging);
		CHECK_EQ(mmc_udp_staging_receive(&pair.staging, pair.receiver,
						 1, &more),
			 1);
		if (i % 8 == 7) /* a datagram of each train was left */
			take(&pair, 8, &slots);
	}
	CHECK(__builtin_popcountll(slots) <= 4);
	pair_close(&pair);
}

/* Whatever is received and taken in between, datagrams come once, and in order. */
static void random_pieces(void)
{
	struct mmc_prng prng;
	static struct pair pair;
	uint64_t slots = 0;
	bool more;

	prng.state = check_seed();
	pair_open(&pair);
	for (unsigned i = 0; i < 3000; i++) {
		uint32_t nwanted = 1 + (uint32_t)mmc_prng_below(&prng, 60);

		while (pair.nsent - pair.ntaken < 100)
			send_train(&pair);
		mmc_udp_staging_reuse(&pair.staging);
		mmc_udp_staging_receive(&pair.staging, pair.receiver, nwanted,
					&more);
		take(&pair, (uint32_t)mmc_prng_below(&prng, 60), &slots);
	}
	while (pair.ntaken < pair.nsent) {
		mmc_udp_staging_reuse(&pair.staging);
		mmc_udp_staging_receive(&pair.staging, pair.receiver, 64,
					&more);
		if (!CHECK(take(&pair, 64, &slots) > 0))
			break;
	}
	pair_close(&pair);
}

CHECK_MAIN(CHECK_TEST(slots_are_used_again), CHECK_TEST(random_pieces))
