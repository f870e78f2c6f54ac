/* SPDX-License-Identifier: BSD-3-Clause */
/* The account of strangers: by address and cause, and bounded. */
#include "drivers/strangers.h"

#include "check.h"

static struct mmc_strangers strangers;

static struct mmc_event from(uint32_t ip, uint16_t port)
{
	return (struct mmc_event){
		.kind = MMC_EVENT_DATAGRAM,
		.source = MMC_PEER_UNKNOWN,
		.from_ip = ip,
		.from_port = port,
	};
}

static void note(uint32_t ip, uint16_t port, enum mmc_refusal cause,
		 uint64_t ndatagrams, uint64_t now_ns)
{
	const struct mmc_event event = from(ip, port);

	mmc_strangers_note(&strangers, &event, cause, ndatagrams, now_ns);
}

/* Each address has its counts by cause, and its first and latest time. */
static void addresses_and_causes_are_told_apart(void)
{
	const struct mmc_event ranks = { .source = 2 };
	const struct mmc_stranger *item = strangers.items;

	strangers.count = 0;
	note(10, 1, MMC_REFUSED_FOREIGN, 1, 100);
	note(10, 2, MMC_REFUSED_FOREIGN, 64, 200);
	note(10, 1, MMC_REFUSED_CORRUPT, 1, 300);
	note(10, 1, MMC_REFUSED_FOREIGN, 2, 400);
	mmc_strangers_note(&strangers, &ranks, MMC_REFUSED_FORGED, 1, 500);
	CHECK_EQ(strangers.count, 3);
	CHECK_EQ(item[0].rank, MMC_STRANGER_NO_RANK);
	CHECK_EQ(item[0].ip, 10);
	CHECK_EQ(item[0].port, 1);
	CHECK_EQ(item[0].first_ns, 100);
	CHECK_EQ(item[0].last_ns, 400);
	CHECK_EQ(item[0].ndatagrams[MMC_REFUSED_FOREIGN], 3);
	CHECK_EQ(item[0].ndatagrams[MMC_REFUSED_CORRUPT], 1);
	CHECK_EQ(item[0].ndatagrams[MMC_REFUSED_FORGED], 0);
	CHECK_EQ(item[1].port, 2);
	CHECK_EQ(item[1].ndatagrams[MMC_REFUSED_FOREIGN], 64);
	CHECK_EQ(item[2].rank, 2);
	CHECK_EQ(item[2].ip, 0);
	CHECK_EQ(item[2].ndatagrams[MMC_REFUSED_FORGED], 1);
}

/* Of more addresses the one that was refused least recently is forgotten. */
static void the_oldest_is_forgotten(void)
{
	bool seen[MMC_STRANGERS_MAX + 1] = { false };

	strangers.count = 0;
	for (uint16_t i = 0; i < MMC_STRANGERS_MAX; i++)
		note(1, i, MMC_REFUSED_FOREIGN, 1, i);
	note(1, 0, MMC_REFUSED_FOREIGN, 1, 100);
	note(1, MMC_STRANGERS_MAX, MMC_REFUSED_MALFORMED, 1, 101);
	CHECK_EQ(strangers.count, MMC_STRANGERS_MAX);
	for (uint32_t i = 0; i < MMC_STRANGERS_MAX; i++) {
		const struct mmc_stranger *item = &strangers.items[i];

		seen[item->port] = true;
		if (item->port != MMC_STRANGERS_MAX)
			continue;
		CHECK_EQ(item->first_ns, 101);
		CHECK_EQ(item->ndatagrams[MMC_REFUSED_FOREIGN], 0);
		CHECK_EQ(item->ndatagrams[MMC_REFUSED_MALFORMED], 1);
	}
	for (uint32_t port = 0; port <= MMC_STRANGERS_MAX; port++)
		CHECK_EQ(seen[port], port != 1);
}

CHECK_MAIN(CHECK_TEST(addresses_and_causes_are_told_apart),
	   CHECK_TEST(the_oldest_is_forgotten))
