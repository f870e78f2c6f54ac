/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/laws.h"
#include "sim/player.h"
#include "sim/program.h"
#include "sim/result.h"
#include "support/assert.h"

/*
 * How long ranks may continue to send after all operations have ended. Ranks repeat a
 * lost control datagram every 20 ms, so this allows for 250 losses in a row.
 */
#define SILENCE_NS (5 * MMC_S_NS)

/* Opens the ranks, unless there are no operations for them. */
static int open_hosts(struct mmc_run_state *run)
{
	const struct mmc_sim_spec *spec = run->stage.spec;
	uint32_t nranks = spec->nops > 0 ? spec->nranks : 0;
	uint8_t *addresses = calloc(nranks + 1, MMC_SIM_ADDRESS_BYTES);
	int rv = 0;

	run->hosts = calloc(nranks + 1, sizeof(*run->hosts));
	if (!addresses || !run->hosts)
		rv = -MMC_ENOMEM;
	for (uint32_t i = 0; rv == 0 && i < nranks; i++) {
		rv = mmc_host_open(&run->hosts[i], &run->stage, i);
		run->nhosts++;
		if (rv == 0)
			mmc_team_address(run->hosts[i].team,
					 addresses + i * MMC_SIM_ADDRESS_BYTES);
	}
	for (uint32_t i = 0; rv == 0 && i < nranks; i++)
		rv = mmc_host_connect(&run->hosts[i], addresses);
	free(addresses);
	return rv;
}

static int open_run(struct mmc_run_state *run, const struct mmc_scene *scene)
{
	int rv = mmc_stage_open(&run->stage, scene);

	if (rv < 0)
		return rv;
	run->player.ready_kind = MMC_TIMER_READY;
	run->player.send_kind = MMC_TIMER_SEND;
	run->player.trace = scene->trace;
	if (scene->script)
		rv = mmc_player_open(&run->player, scene->script,
				     &run->stage.network);
	return rv < 0 ? rv : open_hosts(run);
}

static void close_run(struct mmc_run_state *run)
{
	mmc_player_close(&run->player);
	for (uint32_t i = 0; i < run->nhosts; i++)
		mmc_host_close(&run->hosts[i]);
	free(run->hosts);
	mmc_stage_close(&run->stage);
}

/* Runs a host's engine and then its program, and sets the timer of the next run. */
static void wake(struct mmc_host *host)
{
	uint64_t next_ns;

	if (!mmc_host_step(host, &next_ns))
		return;
	mmc_program_poll(host);
	mmc_host_sleep(host, next_ns);
}

static void dispatch(struct mmc_run_state *run, struct mmc_heap_item *event)
{
	uint32_t nstreams = run->stage.spec->nstreams;
	struct mmc_host *hosts = run->hosts;

	switch (event->kind) {
	case MMC_NETWORK_ARRIVAL:
		run->last_arrival_ns = event->time_ns;
		run->narrivals++;
		mmc_host_on_arrival(&hosts[event->target], event->subject);
		break;
	case MMC_TIMER_WAKE:
		wake(&hosts[event->target]);
		break;
	case MMC_TIMER_START:
		mmc_program_start(&hosts[event->target / nstreams],
				  event->target % nstreams);
		break;
	case MMC_TIMER_PLACE:
		mmc_host_on_place_due(&hosts[event->target]);
		break;
	case MMC_TIMER_READ:
		mmc_host_on_read_due(&hosts[event->target]);
		break;
	case MMC_TIMER_CANCEL:
		mmc_program_cancel(&hosts[event->target]);
		break;
	case MMC_TIMER_DEATH:
		mmc_monitor_on_stall(&run->stage.monitor, MMC_NEVER_NS / 2);
		mmc_host_die(&hosts[event->target], MMC_SIM_KERNEL_OFF);
		break;
	case MMC_TIMER_END:
		mmc_monitor_on_stall(&run->stage.monitor, MMC_NEVER_NS / 2);
		mmc_host_die(&hosts[event->target], MMC_SIM_KERNEL_REFUSES);
		break;
	case MMC_TIMER_INQUIRY:
		mmc_host_on_inquiry_due(&hosts[event->target]);
		break;
	case MMC_NETWORK_CONVOY:
		mmc_player_on_convoy(&run->player, event->subject);
		break;
	case MMC_TIMER_READY:
		mmc_player_on_ready(&run->player, event->target);
		break;
	case MMC_TIMER_SEND:
		mmc_player_on_send_due(&run->player, event->target);
		break;
	default:
		MMC_ASSERT(false);
	}
}

/* Records as a violation that a rank has not ended its operations within a limit. */
static void blame_slowest(struct mmc_run_state *run, const char *limit)
{
	const struct mmc_sim_spec *spec = run->stage.spec;
	uint32_t nops = spec->nops * spec->nstreams;

	for (uint32_t i = 0; i < run->nhosts; i++) {
		const struct mmc_sim_rank *rank = &run->hosts[i].outcome;

		if (!run->hosts[i].dead &&
		    rank->done_ops + rank->failed_ops < nops)
			mmc_finding_add(
				&run->stage.finding, run->stage.network.now_ns,
				"rank %u ended only %u of %u operations "
				"%s",
				i, rank->done_ops + rank->failed_ops, nops,
				limit);
	}
}

/* Returns whether an operation, or the script, has yet to end. */
static bool is_running(const struct mmc_run_state *run)
{
	return run->stage.nrunning > 0 || !mmc_player_ended(&run->player);
}

/*
 * Records a violation, which ends the run, if it takes too long. `end_ns` is when the
 * last operation ended; it is not read while operations are running.
 */
static void check_limits(struct mmc_run_state *run, uint64_t end_ns)
{
	struct mmc_stage *stage = &run->stage;
	uint64_t now_ns = stage->network.now_ns;
	bool ended = !is_running(run);
	/* A rank that stalls at the end may still answer after its stall. */
	bool overdue = ended ? now_ns - end_ns >
				       SILENCE_NS + stage->spec->stall_ns
			     : now_ns > stage->spec->limit_ns;

	if (!overdue && stage->network.nevents <= stage->spec->limit_events)
		return;
	if (ended)
		mmc_finding_add(&stage->finding, now_ns,
				"ranks still send long after all "
				"operations have ended");
	else
		blame_slowest(run, overdue ? "in time"
					   : "within the limit of events");
	if (!mmc_finding_exists(&stage->finding))
		mmc_finding_add(&stage->finding, now_ns,
				"the script has not ended within the limits");
}

/* Handles the events of a run in order, until none is left or a violation is found. */
static void handle_events(struct mmc_run_state *run)
{
	struct mmc_stage *stage = &run->stage;
	struct mmc_heap_item event;
	uint64_t end_ns = 0;

	while (!mmc_finding_exists(&stage->finding) &&
	       mmc_network_next(&stage->network, &event)) {
		bool running = is_running(run);

		dispatch(run, &event);
		if (running && !is_running(run))
			end_ns = stage->network.now_ns;
		check_limits(run, end_ns);
	}
	if (stage->nrunning > 0)
		blame_slowest(run, "before the last event");
}

/* Checks, when all is silent, that no buffer was written after its release. */
static void check_buffers(struct mmc_run_state *run)
{
	struct mmc_stage *stage = &run->stage;
	uint32_t nall = stage->spec->nstreams * stage->spec->nops;

	for (uint32_t i = 0; i < nall; i++)
		for (uint32_t rank = 0; rank < run->nhosts; rank++)
			if (stage->monitor.ops[i].released[rank] &&
			    !mmc_sim_op_is_untouched(&stage->ops[i], rank))
				mmc_finding_add(
					&stage->finding, stage->network.now_ns,
					"rank %u, stream %u, operation %u: its "
					"buffers were written after their "
					"release",
					rank, i / stage->spec->nops,
					i % stage->spec->nops);
}

/* Checks that every datagram is accounted for: nothing may be under way. */
static void check_links(struct mmc_run_state *run)
{
	struct mmc_network *network = &run->stage.network;

	for (uint32_t i = 0; i < network->nlinks; i++) {
		const struct mmc_link *link = &network->links[i];
		uint64_t in = link->entered + link->duplicated;
		uint64_t out = link->delivered + link->lost + link->overflowed;

		if (in != out)
			mmc_finding_add(&run->stage.finding, network->now_ns,
					"link %u: %" PRIu64 " datagrams went "
					"in, %" PRIu64
					" came out or were dropped",
					i, in, out);
	}
}

/* Checks that a rank has received what its link delivered, or dropped it when full. */
static void check_hosts(struct mmc_run_state *run)
{
	for (uint32_t i = 0; i < run->nhosts; i++) {
		struct mmc_host *host = &run->hosts[i];
		const uint64_t *kinds = host->endpoint->received.datagrams;
		uint64_t seen = host->endpoint->overrun_datagrams;

		for (unsigned kind = 0; kind < MMC_TRAFFIC_COUNT; kind++)
			seen += kinds[kind];
		if (!host->dead &&
		    seen != mmc_network_downlink(&run->stage.network, i)
				    ->delivered)
			mmc_finding_add(
				&run->stage.finding, run->stage.network.now_ns,
				"rank %u did not see every datagram that "
				"its link delivered",
				i);
	}
}

/* A nonce must not be used twice under a key, whatever happens in a run. */
static void check_seals(struct mmc_run_state *run)
{
	const struct mmc_seals *seals = &run->stage.seals;

	if (seals->repeated)
		mmc_finding_add(&run->stage.finding, run->stage.network.now_ns,
				"a nonce was used twice under a key");
}

static bool all_succeeded(const struct mmc_run_state *run)
{
	for (uint32_t i = 0; i < run->nhosts; i++)
		if (run->hosts[i].dead || run->hosts[i].outcome.failed_ops > 0)
			return false;
	return !mmc_finding_exists(&run->stage.finding);
}

static void check_end(struct mmc_run_state *run)
{
	if (all_succeeded(run))
		mmc_monitor_check_all_sent(&run->stage.monitor);
	check_seals(run);
	check_buffers(run);
	check_links(run);
	check_hosts(run);
}

/*
 * Runs a scene once. Of the control datagrams of the spec's `drop_kind`, the network
 * loses number `drop_index`. Writes to `*nkind` how many of that kind were sent.
 */
static int run_once(const struct mmc_scene *scene, uint64_t drop_index,
		    uint64_t *nkind, struct mmc_sim_result *result)
{
	const struct mmc_sim_spec *spec = scene->spec;
	struct mmc_run_state run = { 0 };
	int rv = open_run(&run, scene);

	if (rv < 0)
		goto out_close;
	run.stage.monitor.drop_kind = spec->drop_kind;
	run.stage.monitor.drop_index = drop_index;
	for (uint32_t i = 0; i < run.nhosts; i++)
		mmc_program_plan(&run.hosts[i]);
	mmc_player_start(&run.player);
	handle_events(&run);
	if (!mmc_finding_exists(&run.stage.finding))
		check_end(&run);
	if (run.stage.network.out_of_memory || run.stage.seals.out_of_memory) {
		rv = -MMC_ENOMEM;
		goto out_close;
	}
	if (spec->drop_kind < MMC_CONTROL_COUNT)
		*nkind = run.stage.monitor.control[spec->drop_kind];
	rv = mmc_result_fill(result, &run);
	if (rv == 0 && all_succeeded(&run)) {
		mmc_laws_check(&run, &result->figures);
		memcpy(result->violation, run.stage.finding.text,
		       sizeof(result->violation));
	}
out_close:
	close_run(&run);
	return rv;
}

int mmc_sim_run(const struct mmc_sim_spec *spec, struct mmc_sim_result *result)
{
	return mmc_sim_run_on(spec, NULL, NULL, NULL, result);
}

int mmc_sim_run_on(const struct mmc_sim_spec *spec,
		   const struct mmc_fabric *fabric,
		   const struct mmc_script *script, struct mmc_trace *trace,
		   struct mmc_sim_result *result)
{
	const struct mmc_scene scene = { spec, fabric, script, trace };
	struct mmc_sim_result recorded;
	uint64_t nkind = 0;
	int rv = run_once(&scene, UINT64_MAX, &nkind, &recorded);

	/*
	 * Only after a run without the loss is it known which datagram is the
	 * drop_nth from the end. The second run is the same up to that datagram.
	 */
	if (rv == 0 && recorded.violation[0] == 0 && nkind > spec->drop_nth) {
		mmc_sim_result_clear(&recorded);
		rv = run_once(&scene, nkind - 1 - spec->drop_nth, &nkind,
			      &recorded);
	}
	if (rv == 0)
		*result = recorded;
	return rv;
}

/* Runs one spec. Returns true if nothing was violated; otherwise writes what was. */
static bool holds(const struct mmc_sim_spec *spec, char *violation)
{
	struct mmc_sim_result result;
	int rv = mmc_sim_run(spec, &result);

	if (rv < 0) {
		struct mmc_finding finding = { .text = "" };

		mmc_finding_add(&finding, 0, "the run failed: %s",
				mmc_strerror(rv));
		memcpy(violation, finding.text, MMC_SIM_TEXT_SIZE);
		return false;
	}
	memcpy(violation, result.violation, MMC_SIM_TEXT_SIZE);
	mmc_sim_result_clear(&result);
	return violation[0] == 0;
}

uint64_t mmc_sim_run_cases(uint64_t first, uint64_t count, char *violation)
{
	struct mmc_sim_spec spec;

	for (uint64_t i = 0; i < count; i++) {
		mmc_sim_case(first + i, &spec);
		if (!holds(&spec, violation))
			return i;
	}
	return count;
}

uint64_t mmc_sim_run_crowds(uint64_t first, uint64_t count, uint32_t nranks_min,
			    uint32_t nranks_max, char *violation)
{
	struct mmc_sim_spec spec;

	for (uint64_t i = 0; i < count; i++) {
		mmc_sim_crowd(first + i, nranks_min, nranks_max, &spec);
		if (!holds(&spec, violation))
			return i;
	}
	return count;
}
