/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/policy.h"

#include "support/assert.h"

/*
 * nak: the owner is asked, and repairs by multicast the chunks that several ranks lack
 * (after NORM, RFC 5740, and PGM, RFC 3208).
 */
static uint32_t nak_repairer(uint32_t rank, uint32_t nranks, uint32_t owner,
			     uint32_t nasked)
{
	(void)rank, (void)nranks, (void)nasked;
	return owner;
}

static bool nak_serves(uint32_t rank, uint32_t nranks, uint32_t owner,
		       uint32_t asker)
{
	(void)nranks, (void)asker;
	return rank == owner;
}

static const struct mmc_repair_policy nak = {
	.name = "nak",
	.repairer = nak_repairer,
	.serves = nak_serves,
	.gathers = true,
	.release = MMC_RELEASE_ALL,
};

/*
 * neighbour: the left neighbour in the ring is asked, which spreads the load of a loss
 * that many ranks share. It may lack the chunk itself, so a third of the time the owner
 * is asked, which helps if it still holds its block: twice in a row, since a chunk is
 * asked for in every retry interval or in every second one.
 */
static uint32_t neighbour_repairer(uint32_t rank, uint32_t nranks,
				   uint32_t owner, uint32_t nasked)
{
	if (nasked % 6 >= 4)
		return owner;
	return (rank + nranks - 1) % nranks;
}

static bool neighbour_serves(uint32_t rank, uint32_t nranks, uint32_t owner,
			     uint32_t asker)
{
	return rank == owner || asker == (rank + 1) % nranks;
}

static const struct mmc_repair_policy neighbour = {
	.name = "neighbour",
	.repairer = neighbour_repairer,
	.serves = neighbour_serves,
	.gathers = false,
	.release = MMC_RELEASE_RIGHT,
};

/*
 * read: the left neighbour's memory is read, which costs the neighbour nothing; the
 * fetcher turns to owners when that takes too long, and they gather as with nak.
 */
static uint32_t read_repairer(uint32_t rank, uint32_t nranks, uint32_t owner,
			      uint32_t nasked)
{
	(void)owner, (void)nasked;
	return (rank + nranks - 1) % nranks;
}

static const struct mmc_repair_policy read = {
	.name = "read",
	.repairer = read_repairer,
	.serves = neighbour_serves,
	.gathers = true,
	.reads = true,
	.release = MMC_RELEASE_RIGHT,
};

const struct mmc_repair_policy *mmc_repair_policy(enum mmc_repair repair)
{
	switch (repair) {
	case MMC_REPAIR_NAK:
		return &nak;
	case MMC_REPAIR_NEIGHBOUR:
		return &neighbour;
	case MMC_REPAIR_READ:
		return &read;
	}
	MMC_ASSERT(false);
	return NULL;
}
