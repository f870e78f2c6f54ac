/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/laws.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/flow/watermark.h"
#include "core/plan/grouping.h"
#include "engine/state.h"
#include "support/bits.h"

/* ---- figures ------------------------------------------------------------- */

static uint32_t ceil_log2(uint32_t n)
{
	uint32_t bits = 0;

	while (UINT64_C(1) << bits < n)
		bits++;
	return bits;
}

/* Returns whether other ranks report to `rank`. */
static bool has_children(uint32_t rank, uint32_t nranks)
{
	return (uint64_t)rank * MMC_WATERMARK_FAN_IN + 1 < nranks;
}

/*
 * Returns the schedule that the ranks agreed on, as far as the wire shows it: the
 * number of chains is that of the reports. It has no table of turns.
 */
static struct mmc_schedule schedule_of(const struct mmc_sim_spec *spec,
				       const struct mmc_monitor_op *seen)
{
	const struct mmc_layout *layout = &seen->op->layout;
	uint32_t window_bytes = seen->window_bytes;
	uint32_t source_bytes = seen->source_bytes;
	uint8_t *memory = malloc(mmc_schedule_bytes(layout) + 1);
	struct mmc_schedule schedule = { .nchains = 1, .window_chunks = 1 };

	if (mmc_terms_code(&seen->terms)) {
		uint32_t parity = mmc_terms_parity(&seen->terms);

		window_bytes = mmc_grouping_window(spec->code_data, parity,
						   window_bytes);
		source_bytes = mmc_grouping_window(spec->code_data, parity,
						   source_bytes);
	}
	if (memory != NULL && layout->nchunks > 0)
		mmc_schedule_init(&schedule, memory, layout, seen->nchains,
				  window_bytes, source_bytes);
	schedule.starts = NULL;
	free(memory);
	return schedule;
}

/*
 * Returns how many control datagrams a rank may send in an operation without losses:
 * - a message in each round of the two barriers, or two if parity is sent unasked;
 * - 16 for questions and repairs and, from the root, one to the sender of each chain;
 * - reports. A rank to which others report sends one for each sixteenth of all windows,
 *   any other for each quarter of all windows or three quarters of one sender's window.
 */
static uint32_t control_bound(const struct mmc_sim_spec *spec,
			      const struct mmc_layout *layout, uint32_t rank,
			      const struct mmc_schedule *schedule)
{
	uint32_t often = spec->code_parity > 0 ? 2 : 1;
	uint32_t window_chunks = schedule->window_chunks;
	uint32_t all_chunks = layout->equal ? window_chunks * schedule->nchains
					    : window_chunks;
	uint32_t step =
		has_children(rank, layout->nranks)
			? all_chunks / 16 + 1
			: mmc_min_u32(all_chunks / 4, window_chunks * 3 / 4);

	return 2 * often * ceil_log2(layout->nranks) + 16 +
	       (rank == 0 ? schedule->nchains : 0) +
	       layout->nchunks / mmc_max_u32(1, step);
}

/* Adds what the monitor has seen of one operation to the figures. */
static void measure_op(const struct mmc_sim_spec *spec,
		       const struct mmc_monitor_op *seen,
		       struct mmc_sim_figures *figures)
{
	const struct mmc_layout *layout = &seen->op->layout;
	const struct mmc_schedule schedule = schedule_of(spec, seen);

	figures->unicast_ops += seen->unicast;
	figures->agreed_bytes =
		mmc_min_u32(figures->agreed_bytes, seen->window_bytes);
	for (uint32_t r = 0; r < layout->nranks; r++) {
		/* Where parity takes its time as well, ranks ask more often. */
		uint32_t bound = control_bound(spec, layout, r, &schedule) *
				 (spec->code_data + spec->code_parity + 1) /
				 (spec->code_data + 1);
		uint32_t control = seen->control[r];

		figures->excused_most =
			mmc_max_u32(figures->excused_most, seen->excused[r]);
		if ((uint64_t)control * figures->control_bound <
		    (uint64_t)figures->control_most * bound)
			continue;
		figures->control_most = control;
		figures->control_bound = bound;
	}
}

void mmc_laws_measure(const struct mmc_run_state *run,
		      struct mmc_sim_figures *figures)
{
	const struct mmc_stage *stage = &run->stage;
	uint32_t nall = stage->spec->nstreams * stage->spec->nops;

	*figures = (struct mmc_sim_figures){
		.lacked_chunks = stage->network.lacked_chunks,
		.lacked_control = stage->network.lacked_control,
		.agreed_bytes = UINT32_MAX,
	};
	for (uint32_t i = 0; !stage->monitor.blind && i < nall; i++)
		measure_op(stage->spec, &stage->monitor.ops[i], figures);
	for (uint32_t i = 0; i < run->nhosts; i++) {
		const struct mmc_host *host = &run->hosts[i];
		uint32_t window_bytes =
			mmc_path_window_bytes(&host->team->path);

		figures->repair_chunks +=
			stage->monitor.sent[i].datagrams[MMC_TRAFFIC_REPAIR] +
			host->outcome.read_chunks;
		if (figures->window_bytes == 0 ||
		    window_bytes < figures->window_bytes)
			figures->window_bytes = window_bytes;
	}
}

/* ---- laws ---------------------------------------------------------------- */

/* A datagram that is delayed no longer than this is never taken for lost. */
#define LATE_NS_MAX (50 * MMC_US_NS)

/* If a round trip is longer than this, ranks repair chunks twice until they know it. */
#define TRIP_NS_MAX (2 * MMC_PATH_SRTT_NS)

/* Returns whether the laws apply: nothing but loss in the network causes repairs. */
static bool is_judged(const struct mmc_run_state *run,
		      const struct mmc_sim_figures *figures)
{
	const struct mmc_sim_spec *spec = run->stage.spec;

	return !run->stage.monitor.blind && spec->fault[0] == 0 &&
	       spec->nranks > 1 && spec->deaf_ranks == 0 &&
	       figures->unicast_ops == 0 &&
	       (uint64_t)spec->jitter_ns + spec->detour_ns <= LATE_NS_MAX &&
	       8 * (uint64_t)spec->latency_ns <= TRIP_NS_MAX;
}

/*
 * Returns whether chunks were repaired that were not lost, or lost chunks were repaired
 * clearly more often than receivers lacked them.
 */
static bool repairs_too_much(const struct mmc_stage *stage,
			     const struct mmc_sim_figures *figures)
{
	const struct mmc_sim_spec *spec = stage->spec;
	uint64_t nreceivers =
		(uint64_t)spec->nranks * spec->nops * spec->nstreams;
	uint64_t window_bytes = (uint64_t)figures->agreed_bytes * stage->scale;
	uint64_t tenths = 13; /* repairs allowed for each 10 lost chunks */

	if (figures->lacked_chunks == 0)
		return figures->repair_chunks > 0;
	/* Queues shorter than the windows drop repairs, too, until windows adapt. */
	if (spec->queue_bytes < window_bytes * spec->nstreams)
		return false;
	/*
	 * While no multicast arrives, repairs by multicast are sent in vain, again and
	 * again.
	 */
	if (spec->outage == MMC_SIM_OUTAGE_MULTICAST)
		tenths = 20;
	return 10 * figures->repair_chunks >
	       tenths * figures->lacked_chunks + 20 * nreceivers;
}

/* Returns the size of the smallest batch in bytes, on the stage's scale. */
static uint64_t batch_bytes(const struct mmc_stage *stage)
{
	return (uint64_t)MMC_BATCH_CHUNKS_MIN *
	       (stage->spec->chunk_bytes / stage->scale);
}

/*
 * Returns whether a rank sent more control datagrams than the operation and its losses
 * explain. Not judged if the windows hold no batch: senders then pause for so long that
 * ranks ask about them, too.
 */
static bool tells_too_much(const struct mmc_stage *stage,
			   const struct mmc_sim_figures *figures)
{
	uint64_t nlost = figures->lacked_chunks + figures->lacked_control;

	return figures->agreed_bytes >= batch_bytes(stage) &&
	       figures->control_most > figures->control_bound + 4 * nlost;
}

/* Returns whether a window no longer holds a batch although the ranks' buffers do. */
static bool window_is_too_small(const struct mmc_run_state *run,
				const struct mmc_sim_figures *figures)
{
	const struct mmc_stage *stage = &run->stage;

	return stage->spec->adaptive && run->nhosts > 0 &&
	       figures->window_bytes <
		       mmc_min_u64(batch_bytes(stage), figures->agreed_bytes);
}

void mmc_laws_check(struct mmc_run_state *run,
		    const struct mmc_sim_figures *figures)
{
	struct mmc_stage *stage = &run->stage;
	uint64_t now_ns = stage->network.now_ns;

	if (window_is_too_small(run, figures))
		mmc_finding_add(
			&stage->finding, now_ns,
			"a window shrank to %u bytes, less than a batch",
			figures->window_bytes);
	if (!is_judged(run, figures))
		return;
	if (repairs_too_much(stage, figures))
		mmc_finding_add(&stage->finding, now_ns,
				"%" PRIu64 " repairs were sent for %" PRIu64
				" lost chunks",
				figures->repair_chunks, figures->lacked_chunks);
	if (tells_too_much(stage, figures))
		mmc_finding_add(&stage->finding, now_ns,
				"a rank sent %u control datagrams in an "
				"operation that needs at most %u",
				figures->control_most, figures->control_bound);
}
