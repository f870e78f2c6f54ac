/* SPDX-License-Identifier: BSD-3-Clause */
/* Scripts: order, times, pacing and refusals. */
#include "sim/player.h"

#include <mpimcast/sim.h>

#include "fabrics.h"

enum {
	KIND_READY = MMC_NETWORK_TIMER,
	KIND_SEND,
	MESSAGES_MAX = 8,
	BYTES = 1000, /* of a message, which is one packet without headers */
	/* A message from one leaf to the other: four links. */
	TRIP_NS = 4 * (BYTES + SMALL_LATENCY_NS),
};

/* A script and its arrays. */
struct lines {
	struct mmc_script script;
	uint32_t senders[MESSAGES_MAX];
	uint32_t receivers[MESSAGES_MAX];
	uint64_t nbytes[MESSAGES_MAX];
	uint64_t earliest_ns[MESSAGES_MAX];
	uint64_t next_first[MESSAGES_MAX + 1];
	uint32_t next[MESSAGES_MAX];
};

static void lines_init(struct lines *lines)
{
	*lines = (struct lines){
		.script = {
			.senders = lines->senders,
			.receivers = lines->receivers,
			.nbytes = lines->nbytes,
			.earliest_ns = lines->earliest_ns,
			.next_first = lines->next_first,
			.next = lines->next,
			.packet_bytes = BYTES,
			.convoy_bytes = 4 * BYTES,
		},
	};
}

/* Adds a message, for which message `then` waits unless it is UINT32_MAX. */
static void add(struct lines *lines, uint32_t from, uint32_t to,
		uint64_t nbytes, uint32_t then)
{
	uint32_t i = lines->script.nmessages++;
	uint64_t end = lines->next_first[i];

	lines->senders[i] = from;
	lines->receivers[i] = to;
	lines->nbytes[i] = nbytes;
	if (then != UINT32_MAX)
		lines->next[end++] = then;
	lines->next_first[i + 1] = end;
	lines->script.nmeasured = lines->script.nmessages;
}

/*
 * Plays a script on the small fabric, and traces it unless `trace` is NULL. Writes when each
 * node got its last message.
 */
static void play_traced(const struct lines *lines, struct mmc_trace *trace,
			uint64_t *end_ns)
{
	struct small_fabric small;
	struct mmc_player player = { .ready_kind = KIND_READY,
				     .send_kind = KIND_SEND,
				     .trace = trace };
	struct mmc_network network;
	struct mmc_heap_item event;

	small_fabric_init(&small);
	small_open(&small, &network);
	CHECK_EQ(mmc_player_open(&player, &lines->script, &network), 0);
	mmc_player_start(&player);
	while (mmc_network_next(&network, &event))
		if (event.kind == KIND_READY)
			mmc_player_on_ready(&player, event.target);
		else if (event.kind == KIND_SEND)
			mmc_player_on_send_due(&player, event.target);
		else
			mmc_player_on_convoy(&player, event.subject);
	CHECK(mmc_player_ended(&player));
	for (uint32_t i = 0; i < SMALL_HOSTS + SMALL_SWITCHES; i++)
		end_ns[i] = mmc_player_end_ns(&player, i);
	mmc_player_close(&player);
	mmc_network_free(&network);
}

static void play(const struct lines *lines, uint64_t *end_ns)
{
	play_traced(lines, NULL, end_ns);
}

static void messages_wait_for_others(void)
{
	struct lines lines;
	uint64_t end_ns[SMALL_HOSTS + SMALL_SWITCHES];

	lines_init(&lines);
	lines.script.overhead_ns = 77;
	add(&lines, 0, 2, BYTES, 2);
	add(&lines, 3, 2, 2 * BYTES, 2);
	add(&lines, 2, 1, BYTES, UINT32_MAX);
	play(&lines, end_ns);
	/* Two packets over two links arrive before one over four. */
	CHECK_EQ(end_ns[2], TRIP_NS);
	CHECK_EQ(end_ns[1], 2 * TRIP_NS + 77);
	CHECK_EQ(end_ns[0], 0);
}

static void messages_do_not_start_early(void)
{
	struct lines lines;
	uint64_t end_ns[SMALL_HOSTS + SMALL_SWITCHES];

	lines_init(&lines);
	add(&lines, 0, 2, BYTES, 1);
	add(&lines, 2, 0, BYTES, UINT32_MAX);
	lines.earliest_ns[0] = 500;
	lines.earliest_ns[1] = 1000000;
	play(&lines, end_ns);
	CHECK_EQ(end_ns[2], TRIP_NS + 500);
	CHECK_EQ(end_ns[0], TRIP_NS + 1000000);
}

/* A host sends one message after the other, in the order in which they became ready. */
static void host_sends_in_order(void)
{
	struct lines lines;
	uint64_t end_ns[SMALL_HOSTS + SMALL_SWITCHES];

	lines_init(&lines);
	add(&lines, 0, 1, 10 * BYTES, UINT32_MAX);
	add(&lines, 0, 2, BYTES, UINT32_MAX);
	add(&lines, 0, 3, 0, UINT32_MAX);
	play(&lines, end_ns);
	CHECK_EQ(end_ns[1], 11 * BYTES + 2 * SMALL_LATENCY_NS);
	CHECK_EQ(end_ns[2], 10 * BYTES + TRIP_NS);
	/* No bytes, and no headers in this test: it takes its latencies alone. */
	CHECK_EQ(end_ns[3], 11 * BYTES + 4 * SMALL_LATENCY_NS);
}

static void headers_take_time(void)
{
	struct lines lines;
	uint64_t end_ns[SMALL_HOSTS + SMALL_SWITCHES];

	lines_init(&lines);
	lines.script.header_bytes = 50;
	add(&lines, 0, 1, 0, UINT32_MAX);
	add(&lines, 2, 3, 2 * BYTES + 1, UINT32_MAX);
	play(&lines, end_ns);
	CHECK_EQ(end_ns[1], 2 * (50 + SMALL_LATENCY_NS));
	CHECK_EQ(end_ns[3],
		 2 * (BYTES + 50) + 51 + BYTES + 50 + 2 * SMALL_LATENCY_NS);
}

/* A reduction in the network: two hosts to their leaf, which sends up and on. */
static void switches_send_and_receive(void)
{
	struct lines lines;
	uint64_t end_ns[SMALL_HOSTS + SMALL_SWITCHES];

	lines_init(&lines);
	add(&lines, 0, SMALL_HOSTS, BYTES, 2);
	add(&lines, 1, SMALL_HOSTS, BYTES, 2);
	add(&lines, SMALL_HOSTS, SMALL_HOSTS + 3, BYTES, 3);
	add(&lines, SMALL_HOSTS + 3, 2, BYTES, UINT32_MAX);
	play(&lines, end_ns);
	CHECK_EQ(end_ns[SMALL_HOSTS], BYTES + SMALL_LATENCY_NS);
	CHECK_EQ(end_ns[2], TRIP_NS);
}

static void background_does_not_count(void)
{
	struct lines lines;
	uint64_t end_ns[SMALL_HOSTS + SMALL_SWITCHES];

	lines_init(&lines);
	add(&lines, 0, 1, BYTES, UINT32_MAX);
	add(&lines, 2, 1, BYTES, UINT32_MAX);
	lines.script.nmeasured = 1;
	play(&lines, end_ns);
	CHECK_EQ(end_ns[1], 2 * (BYTES + SMALL_LATENCY_NS));
}

static void impossible_scripts_are_refused(void)
{
	for (unsigned flaw = 0; flaw < 7; flaw++) {
		struct mmc_sim_spec spec;
		struct mmc_sim_result result;
		struct small_fabric small;
		struct lines lines;

		small_fabric_init(&small);
		mmc_sim_spec_init(&spec);
		spec.nops = 0;
		spec.adaptive = 1; /* no rank has a window to judge */
		lines_init(&lines);
		add(&lines, 0, 1, BYTES, 1);
		add(&lines, 1, 2, BYTES, 2);
		add(&lines, 2, 3, BYTES, UINT32_MAX);
		if (flaw == 1)
			lines.senders[1] = SMALL_HOSTS + SMALL_SWITCHES;
		else if (flaw == 2)
			lines.receivers[1] = 1;
		else if (flaw == 3)
			lines.next[1] = 0; /* waits for what waits for it */
		else if (flaw == 4)
			lines.script.packet_bytes = 0;
		else if (flaw == 5)
			lines.next[0] = 3;
		else if (flaw == 6)
			lines.script.nmeasured = 4;
		CHECK_EQ(mmc_sim_run_on(&spec, &small.fabric, &lines.script,
					NULL, &result),
			 flaw ? -MMC_EINVAL : 0);
		if (flaw == 0) {
			CHECK_EQ(result.violation[0], 0);
			CHECK_EQ(result.nranks, spec.nranks);
			CHECK_EQ(result.script_ns,
				 result.ranks[3].script_end_ns);
			mmc_sim_result_clear(&result);
		}
	}
}

/* Operations and a script compete for links; the operations' results stay right. */
static void operations_run_beside_a_script(void)
{
	struct mmc_sim_spec spec;
	struct mmc_sim_result alone;
	struct mmc_sim_result beside;
	struct small_fabric small;
	struct lines lines;

	small_fabric_init(&small);
	mmc_sim_spec_init(&spec);
	spec.send_bytes = 8192;
	lines_init(&lines);
	add(&lines, 0, 3, 1 << 20, UINT32_MAX);
	CHECK_EQ(mmc_sim_run_on(&spec, &small.fabric, NULL, NULL, &alone), 0);
	CHECK_EQ(mmc_sim_run_on(&spec, &small.fabric, &lines.script, NULL,
				&beside),
		 0);
	CHECK_EQ(alone.violation[0], 0);
	CHECK_EQ(beside.violation[0], 0);
	CHECK(beside.time_ns > alone.time_ns);
	CHECK(beside.script_ns > 1 << 20);
	mmc_sim_result_clear(&alone);
	mmc_sim_result_clear(&beside);
}

/* A host's measured messages are traced one after the other; a switch's are not traced. */
static void hosts_are_traced(void)
{
	const uint64_t nbytes[] = { 10 * BYTES, BYTES, 0 };
	struct mmc_trace_event events[MESSAGES_MAX];
	uint64_t end_ns[SMALL_HOSTS + SMALL_SWITCHES];
	struct mmc_trace *trace;
	struct lines lines;
	uint64_t nadded, at_ns = 0;

	lines_init(&lines);
	add(&lines, 0, 1, nbytes[0], UINT32_MAX);
	add(&lines, 0, SMALL_HOSTS, nbytes[1], UINT32_MAX);
	add(&lines, 0, 3, nbytes[2], UINT32_MAX);
	add(&lines, SMALL_HOSTS, 1, BYTES, UINT32_MAX);
	add(&lines, 2, 3, BYTES, UINT32_MAX);
	lines.script.nmeasured--;
	CHECK_EQ(mmc_trace_create(MESSAGES_MAX, &trace), 0);
	play_traced(&lines, trace, end_ns);
	CHECK_EQ(mmc_trace_read(trace, events, &nadded), 3);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_EQ(events[i].kind, MMC_TRACE_MESSAGE);
		CHECK_EQ(events[i].track, 0);
		CHECK_EQ(events[i].amount, nbytes[i]);
		CHECK_EQ(events[i].begin_ns, at_ns);
		at_ns += nbytes[i];
		CHECK_EQ(events[i].end_ns, at_ns);
	}
	CHECK_EQ(events[0].peer, 1);
	CHECK_EQ(events[1].peer, UINT32_MAX);
	CHECK_EQ(events[2].peer, 3);
	mmc_trace_free(trace);
}

CHECK_MAIN(CHECK_TEST(hosts_are_traced), CHECK_TEST(messages_wait_for_others),
	   CHECK_TEST(messages_do_not_start_early),
	   CHECK_TEST(host_sends_in_order), CHECK_TEST(headers_take_time),
	   CHECK_TEST(switches_send_and_receive),
	   CHECK_TEST(background_does_not_count),
	   CHECK_TEST(impossible_scripts_are_refused),
	   CHECK_TEST(operations_run_beside_a_script))
