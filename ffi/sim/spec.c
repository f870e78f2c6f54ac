/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpimcast/sim.h>
#include <stdio.h>

#include "sim/monitor.h"
#include "support/bits.h"
#include "support/prng.h"

void mmc_sim_spec_init(struct mmc_sim_spec *spec)
{
	*spec = (struct mmc_sim_spec){
		.seed = 1,
		.nranks = 4,
		.nstreams = 1,
		.nops = 1,
		.kind = MMC_ALLGATHER,
		.root = MMC_SIM_NOBODY,
		.block_bytes = 65536,
		.delayed_rank = MMC_SIM_NOBODY,
		.subgroups = 1,
		.checksum = MMC_CHECKSUM_HEADER,
		.chunk_bytes = 4096,
		.eager_bytes = 65536,
		.timeout_ns = 10 * MMC_S_NS,
		.late_timeout_ns = 600 * MMC_S_NS,
		.buffer_bytes = 4 << 20,
		.send_bytes = 1 << 20,
		.wake_ns = 500,
		.host_ranks = 1,
		.nswitches = 1,
		.link_mbits = 100000,
		.trunk_mbits = 100000,
		.latency_ns = 500,
		.queue_bytes = 16 << 20,
		.loss_period = 1,
		.stalled_rank = MMC_SIM_NOBODY,
		.dead_rank = MMC_SIM_NOBODY,
		.ended_rank = MMC_SIM_NOBODY,
		.cancelling_rank = MMC_SIM_NOBODY,
		.drop_kind = MMC_SIM_NOBODY,
		.limit_ns = 600 * MMC_S_NS,
		.limit_events = 1000000000,
	};
}

/* Returns true once in `n` times. */
static bool one_in(struct mmc_prng *prng, uint64_t n)
{
	return mmc_prng_below(prng, n) == 0;
}

static uint64_t between(struct mmc_prng *prng, uint64_t least, uint64_t most)
{
	return least + mmc_prng_below(prng, most - least + 1);
}

static uint32_t between_u32(struct mmc_prng *prng, uint32_t least,
			    uint32_t most)
{
	return (uint32_t)between(prng, least, most);
}

/*
 * Draws a number below 2^bits_max, in two steps: first its number of bits, so that
 * small ones are as frequent as large ones, and then its value. For a time in
 * nanoseconds, 10 bits are a microsecond, 20 a millisecond, and 30 a second.
 */
static uint64_t scaled(struct mmc_prng *prng, unsigned bits_max)
{
	return mmc_prng_below(
		prng, UINT64_C(1) << mmc_prng_below(prng, bits_max + 1));
}

/*
 * Draws a size next to a multiple of the chunk size, such that all buffers fit in a
 * cache.
 */
static uint64_t draw_block_bytes(struct mmc_prng *prng,
				 const struct mmc_sim_spec *spec)
{
	const uint64_t total_bytes_max = 4 << 20;
	uint64_t nblocks = (uint64_t)spec->nranks * spec->nranks *
			   spec->nstreams * spec->nops;
	uint64_t nchunks = scaled(prng, 6);
	uint64_t bytes;

	while (nchunks * spec->chunk_bytes * nblocks > total_bytes_max)
		nchunks /= 2;
	bytes = nchunks * spec->chunk_bytes + mmc_prng_below(prng, 3);
	return bytes > 0 ? bytes - 1 : 0;
}

static void draw_operations(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	static const uint32_t chunk_bytes[] = { 64, 256, 1000, 1408, 4096 };
	uint32_t chunk = chunk_bytes[mmc_prng_below(prng, 5)];

	spec->nranks = between_u32(prng, 1, 17);
	spec->nstreams = one_in(prng, 2) ? 1 : between_u32(prng, 2, 3);
	spec->nops = one_in(prng, 16) ? between_u32(prng, 9, 20)
				      : between_u32(prng, 1, 3);
	spec->chunk_bytes = chunk;
	spec->block_bytes = draw_block_bytes(prng, spec);
	spec->vary_blocks = one_in(prng, 2);
	spec->pipelined = one_in(prng, 3);
	spec->shuffled = 1;
	spec->in_place = one_in(prng, 2);
	spec->entry_spread_ns = scaled(prng, 24);
	spec->gap_spread_ns = one_in(prng, 2) ? 0 : scaled(prng, 24);
	if (one_in(prng, 8)) {
		spec->delayed_rank = between_u32(prng, 0, spec->nranks - 1);
		spec->delay_ns = scaled(prng, 31);
	}
}

static void draw_protocol(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	spec->chains = between_u32(prng, 0, spec->nranks);
	spec->subgroups = one_in(prng, 2) ? 1 : between_u32(prng, 2, 4);
	spec->repair = between_u32(prng, 0, MMC_REPAIR_READ);
	spec->checksum = between_u32(prng, 0, MMC_CHECKSUM_FULL);
	spec->eager_bytes = one_in(prng, 3) ? 0 : 65536;
	if (one_in(prng, 2))
		spec->window_bytes =
			spec->chunk_bytes * between_u32(prng, 1, 256);
	spec->adaptive = one_in(prng, 3);
}

static void draw_hosts(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	if (one_in(prng, 3))
		spec->buffer_bytes = spec->chunk_bytes * between(prng, 8, 128);
	if (one_in(prng, 4))
		spec->send_bytes = spec->chunk_bytes * between(prng, 1, 32);
	spec->wake_ns = scaled(prng, 14);
	if (one_in(prng, 3))
		spec->place_ns = 1 + scaled(prng, 20);
}

static void draw_network(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	static const uint32_t rates_mbits[] = { 1000, 10000, 100000 };

	spec->link_mbits = rates_mbits[mmc_prng_below(prng, 3)];
	spec->trunk_mbits = rates_mbits[mmc_prng_below(prng, 3)];
	spec->latency_ns = (uint32_t)scaled(prng, 16);
	if (one_in(prng, 3))
		spec->nswitches = between_u32(prng, 1, spec->nranks);
	if (one_in(prng, 4))
		spec->queue_bytes = 16384 + scaled(prng, 20);
	if (one_in(prng, 3))
		spec->jitter_ns = (uint32_t)scaled(prng, 20);
	if (one_in(prng, 4))
		spec->duplicate_ppm = (uint32_t)scaled(prng, 18);
	if (!one_in(prng, 4))
		spec->loss_ppm = (uint32_t)scaled(prng, 18);
	if (one_in(prng, 16))
		spec->loss_ppm = 500000;
	if (one_in(prng, 8))
		spec->uplink_loss_ppm = (uint32_t)scaled(prng, 17);
}

static void draw_mishaps(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	if (one_in(prng, 4)) {
		spec->stalled_rank =
			one_in(prng, 4)
				? MMC_SIM_NOBODY
				: between_u32(prng, 0, spec->nranks - 1);
		spec->stall_ns = 20 * MMC_MS_NS;
		spec->stall_period_ns = 100 * MMC_MS_NS;
		spec->stall_begin_ns = scaled(prng, 27);
	}
	if (one_in(prng, 4)) {
		spec->drop_kind = between_u32(prng, 0, MMC_CONTROL_COUNT - 1);
		spec->drop_nth = one_in(prng, 2) ? 0 : between_u32(prng, 1, 3);
	}
	if (one_in(prng, 8)) {
		spec->dead_rank = between_u32(prng, 0, spec->nranks - 1);
		spec->dead_ns = scaled(prng, 26);
		spec->timeout_ns = 2 * MMC_S_NS;
	}
	if (one_in(prng, 24))
		spec->entry_timeout_ns = 1 + scaled(prng, 31);
	if (one_in(prng, 12)) {
		spec->cancelling_rank = between_u32(prng, 0, spec->nranks - 1);
		spec->cancel_ns = scaled(prng, 26);
	}
	if (one_in(prng, 12)) {
		spec->deaf_ranks = mmc_prng_next(prng) &
				   ((UINT64_C(1) << spec->nranks) - 1);
		spec->deaf_ns = one_in(prng, 2) ? 0 : scaled(prng, 22);
		if (one_in(prng, 2))
			spec->deaf_end_ns = spec->deaf_ns + scaled(prng, 28);
	}
}

static void draw_faults(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	const char *kinds[] = { "multicast", "control", "repair", "all" };
	const char *kind;
	uint32_t loss, dup, reorder, delay_us, seed;
	uint32_t corrupt = 0;

	if (!one_in(prng, 6))
		return;
	/* Not in the call itself: C does not say in which order arguments are evaluated. */
	seed = between_u32(prng, 0, 999);
	if (spec->checksum != MMC_CHECKSUM_OFF)
		corrupt = between_u32(prng, 0, 9);
	kind = kinds[mmc_prng_below(prng, 4)];
	delay_us = (uint32_t)scaled(prng, 10);
	reorder = between_u32(prng, 0, 20);
	dup = between_u32(prng, 0, 20);
	loss = between_u32(prng, 0, 20);
	snprintf(spec->fault, sizeof(spec->fault),
		 "loss=0.%02u,dup=0.%02u,reorder=0.%02u,delay_us=%u,kind=%s,"
		 "corrupt=0.%02u,seed=%u",
		 loss, dup, reorder, delay_us, kind, corrupt, seed);
}

static void draw_registrations(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	if (!one_in(prng, 6))
		return;
	spec->tight_ranks = mmc_prng_next(prng);
	spec->registrations = between_u32(prng, 0, 3);
}

/*
 * Draws a small number of receives. Those that are posted before an operation starts
 * aim at nothing; if there were many, they would take all chunks, and none would be
 * placed.
 */
static void draw_zero_copy(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	if (!one_in(prng, 3))
		return;
	spec->zero_copy = 2 + (uint32_t)scaled(prng, 5);
	spec->chains = between_u32(prng, 1, mmc_min_u32(spec->nranks, 6));
	spec->subgroups = spec->chains + between_u32(prng, 0, 3);
}

/* Draws the kind of the operations. A Bcast has one block, which may be larger. */
static void draw_kinds(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	if (one_in(prng, 4))
		return;
	spec->kind = between_u32(prng, 0, MMC_BCAST);
	if (spec->kind == MMC_BCAST && one_in(prng, 2))
		spec->block_bytes *= between(prng, 1, spec->nranks);
}

/* ---- many ranks ------------------------------------------------------------ */

/* Draws few operations of few chunks, since costs grow with the square of the ranks. */
static void draw_crowd_operations(struct mmc_prng *prng,
				  struct mmc_sim_spec *spec)
{
	uint64_t nchunks_max = UINT64_C(300000) / spec->nranks / spec->nranks;

	nchunks_max = mmc_max_u64(1, mmc_min_u64(64, nchunks_max));
	spec->chunk_bytes = one_in(prng, 2) ? 1456 : 4096;
	spec->nops = between_u32(prng, 1, 2);
	spec->block_bytes = spec->chunk_bytes * between(prng, 1, nchunks_max);
	spec->block_bytes -= mmc_prng_below(prng, 3);
	spec->kind = one_in(prng, 4) ? MMC_ALLGATHERV : MMC_ALLGATHER;
	spec->repair = between_u32(prng, 0, MMC_REPAIR_READ);
	spec->chains = one_in(prng, 4) ? between_u32(prng, 1, 8) : 0;
	spec->entry_spread_ns = scaled(prng, 22);
	if (one_in(prng, 8)) {
		spec->delayed_rank = between_u32(prng, 0, spec->nranks - 1);
		spec->delay_ns = scaled(prng, 28);
	}
}

/* Draws paths whose delays differ, but not so much that delay is taken for loss. */
static void draw_crowd_network(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	static const uint32_t rates_mbits[] = { 1000, 10000, 100000 };
	uint32_t rate_mbits = rates_mbits[mmc_prng_below(prng, 3)];

	spec->link_mbits = rate_mbits;
	spec->trunk_mbits = one_in(prng, 2) ? rate_mbits : 10 * rate_mbits;
	spec->latency_ns = (uint32_t)scaled(prng, 12);
	spec->buffer_bytes = one_in(prng, 2) ? 212992 : 4 << 20;
	spec->uneven = one_in(prng, 2);
	if (one_in(prng, 2))
		spec->nswitches = between_u32(prng, 2, 8);
	if (one_in(prng, 2))
		spec->detour_ns = (uint32_t)mmc_prng_below(prng, 20000);
	if (one_in(prng, 2))
		spec->jitter_ns = (uint32_t)mmc_prng_below(prng, 20000);
	if (one_in(prng, 3)) {
		spec->adaptive = 1;
		spec->queue_bytes = 262144 + scaled(prng, 20);
	}
	if (one_in(prng, 3))
		spec->known_mbits = rate_mbits * 100;
	else if (one_in(prng, 2))
		spec->known_mbits = rate_mbits / 100;
	if (one_in(prng, 3))
		spec->loss_ppm = (uint32_t)scaled(prng, 13);
	if (one_in(prng, 6))
		spec->uplink_loss_ppm = (uint32_t)scaled(prng, 11);
}

/*
 * Draws stalls of one machine, of all ranks at the same time, or of all machines, each
 * at times of its own.
 */
static void draw_crowd_stalls(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	if (!one_in(prng, 3))
		return;
	spec->stall_ns = 1 + scaled(prng, 24);
	spec->stall_period_ns = spec->stall_ns + 100 * MMC_MS_NS;
	spec->stall_begin_ns = scaled(prng, 25);
	spec->host_ranks = between_u32(prng, 1, 16);
	if (one_in(prng, 4))
		spec->host_ranks = spec->nranks;
	spec->stalled_rank = one_in(prng, 2)
				     ? MMC_SIM_NOBODY
				     : between_u32(prng, 0, spec->nranks - 1);
}

static void draw_crowd_outages(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	if (!one_in(prng, 4))
		return;
	spec->outage = between_u32(prng, MMC_SIM_OUTAGE_MULTICAST,
				   MMC_SIM_OUTAGE_LEAF);
	if (spec->outage == MMC_SIM_OUTAGE_HOST)
		spec->outage_place = between_u32(prng, 0, spec->nranks - 1);
	else
		spec->outage_place = between_u32(prng, 0, spec->nswitches - 1);
	spec->outage_ns = scaled(prng, 24);
	spec->outage_end_ns = spec->outage_ns + scaled(prng, 26);
}

void mmc_sim_crowd(uint64_t seed, uint32_t nranks_min, uint32_t nranks_max,
		   struct mmc_sim_spec *spec)
{
	struct mmc_prng prng = { .state = ~seed };

	mmc_sim_spec_init(spec);
	spec->seed = seed;
	spec->limit_events = 100000000;
	spec->nranks = between_u32(&prng, nranks_min, nranks_max);
	draw_crowd_operations(&prng, spec);
	draw_crowd_network(&prng, spec);
	draw_crowd_stalls(&prng, spec);
	draw_crowd_outages(&prng, spec);
	if (one_in(&prng, 12)) {
		spec->dead_rank = between_u32(&prng, 0, spec->nranks - 1);
		spec->dead_ns = scaled(&prng, 25);
		spec->timeout_ns = 2 * MMC_S_NS;
	}
}

/* Draws whether links lose consecutive datagrams. */
static void draw_periods(struct mmc_prng *prng, struct mmc_sim_spec *spec)
{
	if (one_in(prng, 6))
		spec->loss_period = between_u32(prng, 2, 40);
}

/* ---- one case ---------------------------------------------------------------- */

void mmc_sim_case(uint64_t seed, struct mmc_sim_spec *spec)
{
	struct mmc_prng prng = { .state = seed };

	mmc_sim_spec_init(spec);
	spec->seed = seed;
	spec->limit_events = 20000000;
	draw_operations(&prng, spec);
	draw_protocol(&prng, spec);
	draw_hosts(&prng, spec);
	draw_network(&prng, spec);
	draw_mishaps(&prng, spec);
	draw_faults(&prng, spec);
	draw_registrations(&prng, spec);
	draw_zero_copy(&prng, spec);
	draw_kinds(&prng, spec);
	draw_periods(&prng, spec);
}
