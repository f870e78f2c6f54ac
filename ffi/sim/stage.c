/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/stage.h"

#include <stdlib.h>

#include "support/bits.h"

/* Buffers of one operation that take more than this are too much for a laptop. */
#define PAYLOADS_BYTES_MAX (UINT64_C(1) << 28)

/* The numbers that the events of a trace have for tracks. */
#define TRACKS_MAX 65536

/* The number that parts per million are parts of. */
#define PPM UINT64_C(1000000)

_Static_assert((int)MMC_OUTAGE_MULTICAST == MMC_SIM_OUTAGE_MULTICAST &&
		       (int)MMC_OUTAGE_HOST == MMC_SIM_OUTAGE_HOST &&
		       (int)MMC_OUTAGE_LEAF == MMC_SIM_OUTAGE_LEAF &&
		       (int)MMC_OUTAGE_LINK == MMC_SIM_OUTAGE_LINK,
	       "a spec's outages are the network's");

/* Returns whether the rank, switch or link that an outage cuts off exists. */
static bool outage_is_sane(const struct mmc_scene *scene)
{
	const struct mmc_sim_spec *spec = scene->spec;
	const struct mmc_fabric *fabric = scene->fabric;

	switch (spec->outage) {
	case MMC_SIM_OUTAGE_HOST:
		return spec->outage_place < spec->nranks;
	case MMC_SIM_OUTAGE_LEAF:
		return spec->outage_place <
		       (fabric ? fabric->nswitches : spec->nswitches);
	case MMC_SIM_OUTAGE_LINK:
		return fabric && spec->outage_place < fabric->nlinks &&
		       spec->outage_place >= 2 * fabric->nhosts;
	default:
		return spec->outage < MMC_OUTAGE_COUNT;
	}
}

static bool scene_is_sane(const struct mmc_scene *scene)
{
	const struct mmc_sim_spec *spec = scene->spec;

	return spec->nranks > 0 && spec->nranks <= 4096 &&
	       (spec->nops > 0 || scene->script) && spec->nops <= 65536 &&
	       spec->nstreams > 0 && spec->nstreams <= MMC_SIM_STREAMS_MAX &&
	       spec->subgroups > 0 &&
	       spec->chunk_bytes >= MMC_SIM_STAMP_BYTES &&
	       spec->chunk_bytes <= 65000 &&
	       spec->block_bytes <= UINT64_C(1) << 40 &&
	       spec->kind <= MMC_BCAST &&
	       (spec->root < spec->nranks || spec->root == MMC_SIM_NOBODY) &&
	       spec->repair <= MMC_REPAIR_READ &&
	       spec->code_data <= MMC_CODE_DATA_MAX &&
	       spec->code_parity <= MMC_CODE_PARITY_MAX &&
	       spec->checksum <= MMC_CHECKSUM_FULL && spec->loss_ppm < PPM &&
	       spec->protect <= MMC_PROTECT_ENCRYPT &&
	       (spec->protect == MMC_PROTECT_OFF || spec->zero_copy == 0) &&
	       spec->zero_copy <= 4096 && spec->uplink_loss_ppm < PPM &&
	       spec->duplicate_ppm < PPM && spec->host_ranks > 0 &&
	       outage_is_sane(scene) &&
	       (!scene->trace || spec->nranks * spec->nstreams <= TRACKS_MAX) &&
	       (!scene->trace || !scene->script || !scene->fabric ||
		scene->fabric->nhosts <= TRACKS_MAX) &&
	       (spec->stall_ns == 0 || spec->stall_ns < spec->stall_period_ns);
}

/*
 * Returns the bytes that a byte of payload stands for: 1 while real payloads are cheap,
 * else a chunk's bytes for each byte of its stamp.
 */
static uint32_t payload_scale(const struct mmc_sim_spec *spec)
{
	uint64_t total_bytes = spec->nranks * spec->block_bytes;

	if (spec->nranks < MMC_SIM_STAMPED_RANKS &&
	    spec->nranks * total_bytes <= PAYLOADS_BYTES_MAX)
		return 1;
	return spec->chunk_bytes / MMC_SIM_STAMP_BYTES;
}

/* Returns a probability below 1 as the network takes it. */
static uint32_t parts_of_2_32(uint32_t ppm)
{
	return (uint32_t)(((uint64_t)ppm << 32) / PPM);
}

static int open_network(struct mmc_stage *stage,
			const struct mmc_fabric *fabric)
{
	const struct mmc_sim_spec *spec = stage->spec;
	uint32_t chunk_bytes = spec->chunk_bytes / stage->scale;
	uint32_t longest_bytes = mmc_max_u32(chunk_bytes + MMC_HEADER_BYTES,
					     MMC_MESSAGE_BYTES_MAX);
	uint32_t crc_bytes = mmc_stage_checksum(spec) == MMC_CHECKSUM_FULL
				     ? MMC_CRC_BYTES
				     : 0;
	uint32_t added_bytes = crc_bytes + mmc_stage_seal_bytes(spec);
	const struct mmc_network_options options = {
		.nhosts = spec->nranks,
		.fabric = fabric,
		.nswitches = spec->nswitches,
		.link_mbits = spec->link_mbits,
		.trunk_mbits = spec->trunk_mbits,
		.latency_ns = spec->latency_ns,
		.jitter_ns = spec->jitter_ns,
		.uneven = spec->uneven != 0,
		.detour_ns = spec->detour_ns,
		.queue_bytes = spec->queue_bytes,
		.loss = parts_of_2_32(spec->loss_ppm),
		.uplink_loss = parts_of_2_32(spec->uplink_loss_ppm),
		.loss_period = spec->loss_period,
		.duplicate = parts_of_2_32(spec->duplicate_ppm),
		.deaf_hosts = spec->deaf_ranks,
		.deaf_ns = spec->deaf_ns,
		.deaf_end_ns = spec->deaf_end_ns,
		.outage = {
			.kind = (enum mmc_outage_kind)spec->outage,
			.place = spec->outage_place,
			.begin_ns = spec->outage_ns,
			.end_ns = spec->outage_end_ns,
		},
		.datagram_bytes_max = longest_bytes + added_bytes,
		.head_bytes = MMC_HEADER_BYTES + added_bytes,
		.payload_scale = stage->scale,
		.seed = ~spec->seed,
	};

	return mmc_network_init(&stage->network, &options);
}

/*
 * Draws a size of at most `most` bytes: half the time next to a multiple of the chunk
 * size.
 */
static uint64_t draw_block_bytes(struct mmc_prng *prng, uint64_t most,
				 uint32_t chunk_bytes)
{
	uint64_t whole = mmc_prng_below(prng, most / chunk_bytes + 1);
	uint64_t bytes = whole * chunk_bytes + mmc_prng_below(prng, 3);

	bytes = bytes > 0 ? bytes - 1 : 0;
	if (mmc_prng_below(prng, 2))
		bytes = mmc_prng_below(prng, most + 1);
	return mmc_min_u64(bytes, most);
}

/* Returns a size as it is on this stage: if scaled, a stamp for each chunk. */
static uint64_t scaled_bytes(const struct mmc_stage *stage, uint64_t bytes)
{
	uint32_t chunk_bytes = stage->spec->chunk_bytes;

	if (stage->scale == 1)
		return bytes;
	return (bytes + chunk_bytes - 1) / chunk_bytes * MMC_SIM_STAMP_BYTES;
}

/* Draws the length of each rank's block, which is often 0; sometimes all are 0. */
static int draw_blocks(const struct mmc_stage *stage, struct mmc_prng *prng,
		       struct mmc_sim_shape *shape)
{
	const struct mmc_sim_spec *spec = stage->spec;
	bool none = mmc_prng_below(prng, 16) == 0;

	shape->blocks_bytes = calloc(spec->nranks, sizeof(uint64_t));
	if (!shape->blocks_bytes)
		return -MMC_ENOMEM;
	for (uint32_t r = 0; r < spec->nranks; r++) {
		uint64_t bytes = draw_block_bytes(prng, spec->block_bytes,
						  spec->chunk_bytes);

		if (!none && mmc_prng_below(prng, 4) > 0)
			shape->blocks_bytes[r] = scaled_bytes(stage, bytes);
	}
	shape->gaps = stage->scale == 1 && mmc_prng_below(prng, 2);
	return 0;
}

static int draw_shape(const struct mmc_stage *stage, struct mmc_prng *prng,
		      struct mmc_sim_shape *shape)
{
	const struct mmc_sim_spec *spec = stage->spec;
	uint64_t bytes = spec->block_bytes;

	if (spec->vary_blocks)
		bytes = draw_block_bytes(prng, bytes, spec->chunk_bytes);
	*shape = (struct mmc_sim_shape){
		.kind = (enum mmc_kind)spec->kind,
		.nranks = spec->nranks,
		.chunk_bytes = spec->chunk_bytes / stage->scale,
		.block_bytes = scaled_bytes(stage, bytes),
		.in_place = spec->in_place != 0,
	};
	if (spec->kind == 0)
		shape->kind = (enum mmc_kind)(1 + mmc_prng_below(prng, 3));
	if (shape->kind == MMC_BCAST)
		shape->root =
			spec->root != MMC_SIM_NOBODY
				? spec->root
				: (uint32_t)mmc_prng_below(prng, spec->nranks);
	return shape->kind == MMC_ALLGATHERV ? draw_blocks(stage, prng, shape)
					     : 0;
}

static int open_ops(struct mmc_stage *stage)
{
	const struct mmc_sim_spec *spec = stage->spec;
	uint32_t nall = spec->nstreams * spec->nops;
	struct mmc_prng prng = { .state = spec->seed * 3 };

	for (uint32_t i = 0; i < spec->nstreams; i++)
		stage->channels[i] = mmc_prng_next(&prng) & MMC_CHANNEL_MASK;
	stage->ops = calloc(nall + 1, sizeof(*stage->ops));
	if (!stage->ops)
		return -MMC_ENOMEM;
	for (uint32_t i = 0; i < nall; i++) {
		struct mmc_sim_shape shape;
		int rv = draw_shape(stage, &prng, &shape);

		if (rv == 0)
			rv = mmc_sim_op_init(&stage->ops[i], &shape,
					     mmc_prng_next(&prng));
		if (rv < 0)
			return rv;
	}
	return 0;
}

static int open_monitor(struct mmc_stage *stage)
{
	const struct mmc_sim_spec *spec = stage->spec;
	int rv;

	stage->monitor = (struct mmc_monitor){
		.finding = &stage->finding,
		.network = &stage->network,
		.nranks = spec->nranks,
		.nops = spec->nops,
		.nstreams = spec->nstreams,
		.subgroups = spec->subgroups,
		.chains = spec->chains,
		.by_chain = spec->zero_copy > 0,
		.repair = spec->repair,
		.code_data = spec->code_data,
		.code_parity = spec->code_parity,
		.eager_bytes = spec->eager_bytes / stage->scale,
		.blind = spec->unwatched != 0,
		.checksum = mmc_stage_checksum(spec),
		.seal_bytes = mmc_stage_seal_bytes(spec),
		.channels = stage->channels,
	};
	rv = mmc_monitor_init(&stage->monitor, stage->ops);
	if (rv < 0)
		return rv;
	stage->network.tap = mmc_monitor_tap;
	stage->network.tap_context = &stage->monitor;
	return 0;
}

int mmc_stage_open(struct mmc_stage *stage, const struct mmc_scene *scene)
{
	const struct mmc_sim_spec *spec = scene->spec;
	int rv;

	*stage = (struct mmc_stage){ .spec = spec, .trace = scene->trace };
	mmc_seals_enter(&stage->seals);
	if (!scene_is_sane(scene))
		return -MMC_EINVAL;
	stage->scale = payload_scale(spec);
	stage->kernels = calloc(spec->nranks, sizeof(*stage->kernels));
	if (!stage->kernels)
		return -MMC_ENOMEM;
	rv = open_network(stage, scene->fabric);
	if (rv == 0)
		rv = open_ops(stage);
	if (rv == 0)
		rv = open_monitor(stage);
	return rv;
}

void mmc_stage_close(struct mmc_stage *stage)
{
	uint32_t nall = stage->spec->nstreams * stage->spec->nops;

	mmc_monitor_free(&stage->monitor);
	for (uint32_t i = 0; stage->ops && i < nall; i++)
		mmc_sim_op_free(&stage->ops[i]);
	free(stage->ops);
	free(stage->kernels);
	mmc_seals_free(&stage->seals);
	mmc_sim_regions_free(&stage->regions);
	mmc_network_free(&stage->network);
}

/* Returns whether the failure has happened in this run, to the rank that it names. */
static bool has_happened(const struct mmc_sim_spec *spec,
			 const struct mmc_failure *failure)
{
	bool ended = spec->ended_rank != MMC_SIM_NOBODY;

	switch (-failure->error) {
	case MMC_ENOANSWER: /* a failed read does not know the reason */
		return failure->culprit == spec->dead_rank ||
		       (ended && failure->culprit == spec->ended_rank);
	case MMC_EGONE:
		return ended && failure->culprit == spec->ended_rank;
	case MMC_ELATE:
		return failure->culprit == spec->stalled_rank &&
		       spec->stall_ns >= spec->late_timeout_ns;
	case MMC_ECANCELED:
		return failure->culprit == spec->cancelling_rank;
	case MMC_ENOPROGRESS:
		return failure->culprit == spec->dead_rank ||
		       (ended && failure->culprit == spec->ended_rank);
	case MMC_ENOENTRY:
		return spec->entry_timeout_ns > 0;
	default:
		return false;
	}
}

const char *mmc_stage_failure_flaw(const struct mmc_stage *stage, int error,
				   const struct mmc_failure *failure)
{
	if (error == 0)
		return NULL;
	if (error != failure->error && error != -MMC_EPOISONED)
		return "the reason given is a different error";
	return has_happened(stage->spec, failure)
		       ? NULL
		       : "the named cause did not happen in this run";
}
