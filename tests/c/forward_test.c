/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of several nodes, whose leaders exchange their nodes' parts. */
#include "node/forward.h"

#include "node_jobs.h"
#include "node_program.h"

enum { NROUNDS = 20 };

static struct leaders leaders;
static struct job job;
static struct program program;

/* How ranks are spread over nodes. */
enum map { BLOCK, CYCLIC, UNEVEN, NMAPS };

/* Draws the leaders of each node, any of its ranks, and another one for each rail. */
static void appoint(struct mmc_prng *prng)
{
	for (uint32_t i = 0; i < leaders_number(&leaders); i++) {
		uint32_t node = i % job.nnodes;
		bool leads;

		do {
			uint32_t rank =
				(uint32_t)mmc_prng_below(prng, job.nranks);

			leads = job.nodes[rank] != node;
			for (uint32_t k = node; k < i; k += job.nnodes)
				leads |= job.leaders[k] == rank;
			job.leaders[i] = rank;
		} while (leads);
	}
}

/* Spreads ranks over the nodes, each of which has one for each rail at least. */
static void spread(enum map map, uint32_t nranks, struct mmc_prng *prng)
{
	job.nranks = nranks;
	job.nnodes = leaders.nnodes;
	for (uint32_t r = 0; r < nranks; r++) {
		if (map == BLOCK)
			job.nodes[r] = r * job.nnodes / nranks;
		else if (map == CYCLIC)
			job.nodes[r] = r % job.nnodes;
		else
			job.nodes[r] = r < leaders_number(&leaders)
					       ? r % job.nnodes
					       : job.nnodes - 1;
	}
	appoint(prng);
}

/* No byte is lost on the way: each rank puts in what it has, and takes what it lacks. */
static void check_counts(void)
{
	uint64_t tx_bytes = 0;
	uint64_t rx_bytes = 0;

	for (uint32_t r = 0; r < job.nranks; r++) {
		struct mmc_node_counts counts;

		mmc_node_stream_counts(job.streams[r], &counts);
		CHECK_EQ(counts.operations, NOPERATIONS);
		CHECK_EQ(counts.pieces, job.streams[0]->next_piece);
		tx_bytes += counts.tx_bytes;
		rx_bytes += counts.rx_bytes;
	}
	CHECK_EQ(rx_bytes, tx_bytes * (job.nranks - 1));
}

static void run_round(struct mmc_prng *prng, uint64_t seed)
{
	struct mmc_node_stream_options options = members_options(1);
	uint32_t least = leaders_number(&leaders);

	program.nranks =
		least + (uint32_t)mmc_prng_below(prng, MEMBERS_MAX - least);
	draw(&program, prng);
	spread((enum map)mmc_prng_below(prng, NMAPS), program.nranks, prng);
	options.nslots = 1U << mmc_prng_below(prng, 4);
	options.slot_bytes = 512 * (1 + mmc_prng_below(prng, 40));
	options.spin_ns = mmc_prng_below(prng, 2) * 20 * MMC_US_NS;
	job_open(&job, &leaders, options);
	run_program(&program, job.streams, seed);
	check_counts();
	job_close(&job);
}

static void random_programs_of_nodes(uint32_t nnodes, uint32_t nrails)
{
	struct mmc_prng prng = { check_seed() + nnodes + nrails };

	leaders_open(&leaders, nnodes, nrails);
	for (uint32_t round = 0; round < NROUNDS; round++)
		run_round(&prng, check_seed() + round);
	leaders_close(&leaders);
}

static void random_programs_of_two_nodes(void)
{
	random_programs_of_nodes(2, 1);
}

static void random_programs_of_three_nodes(void)
{
	random_programs_of_nodes(3, 1);
}

static void random_programs_over_two_rails(void)
{
	random_programs_of_nodes(3, 2);
}

static void random_programs_over_three_rails(void)
{
	random_programs_of_nodes(2, 3);
}

CHECK_MAIN(CHECK_TEST(random_programs_of_two_nodes),
	   CHECK_TEST(random_programs_of_three_nodes),
	   CHECK_TEST(random_programs_over_two_rails),
	   CHECK_TEST(random_programs_over_three_rails))
