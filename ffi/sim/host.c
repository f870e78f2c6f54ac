/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/host.h"

#include <stdlib.h>
#include <string.h>

#include "core/counters.h"
#include "drivers/fault/fault.h"
#include "drivers/protect/protect.h"
#include "engine/state.h"
#include "support/bits.h"

/* A host's buffer for control messages: room for about a thousand. */
#define CONTROL_BYTES UINT64_C(1048576)
#define BYTES_PER_S_PER_MBIT UINT64_C(125000)

/* ---- opening and closing ------------------------------------------------- */

/*
 * Returns the chunk bytes that the data buffer holds for sure: whole datagrams, less an
 * eighth for control messages that arrive by multicast.
 */
static uint32_t safe_bytes(const struct mmc_stage *stage, uint32_t chunk_bytes)
{
	uint64_t buffer_bytes = stage->spec->buffer_bytes / 8 * 7;
	uint64_t datagram_bytes = (uint64_t)chunk_bytes * stage->scale +
				  stage->network.options.head_bytes;
	uint64_t nchunks = buffer_bytes / datagram_bytes;
	uint64_t nreceives = stage->spec->zero_copy;

	if (nreceives > 0)
		nchunks = mmc_min_u64(nchunks, nreceives - nreceives / 8);
	return (uint32_t)(nchunks * chunk_bytes);
}

/* Returns how many regions the rank's limit of locked memory allows. */
static uint32_t registrations_max(const struct mmc_sim_spec *spec,
				  uint32_t rank)
{
	bool tight = rank < 64 && (spec->tight_ranks >> rank & 1) != 0;

	return tight ? spec->registrations : UINT32_MAX;
}

/* Protects the datagrams of an endpoint by the stand-in, with the run's secret. */
static int protect(const struct mmc_host *host, struct mmc_endpoint **endpoint)
{
	const struct mmc_sim_spec *spec = host->stage->spec;
	const struct mmc_protect_options options = {
		.primitive = &mmc_sim_primitive,
		.mode = (enum mmc_protect)spec->protect,
		.rank = host->rank,
		.nranks = spec->nranks,
		.body_bytes =
			mmc_max_u32(spec->chunk_bytes / host->stage->scale,
				    MMC_MESSAGE_BYTES_MAX - MMC_HEADER_BYTES),
	};
	struct mmc_secret *secret;
	int rv = mmc_protect_wrap(&options, *endpoint, endpoint);

	if (rv == 0)
		rv = mmc_secret_create(&secret);
	if (rv < 0)
		return rv;
	memcpy(mmc_secret_bytes(secret), &spec->seed, sizeof(spec->seed));
	rv = mmc_protect_start(*endpoint, secret);
	mmc_secret_free(secret);
	return rv;
}

static int open_endpoint(struct mmc_host *host, struct mmc_endpoint **endpoint)
{
	const struct mmc_sim_spec *spec = host->stage->spec;
	const struct mmc_sim_endpoint_options options = {
		.network = &host->stage->network,
		.host = host->rank,
		.subgroups = spec->subgroups,
		.buffer_bytes = spec->buffer_bytes,
		.control_bytes = CONTROL_BYTES,
		.place_delay_ns = spec->place_ns,
		.place_kind = MMC_TIMER_PLACE,
		.regions = &host->stage->regions,
		.registrations_max = registrations_max(spec, host->rank),
		.read_kind = MMC_TIMER_READ,
		.kernels = host->stage->kernels,
		.inquiry_kind = MMC_TIMER_INQUIRY,
		.receives = spec->zero_copy,
	};
	int rv = mmc_sim_endpoint_create(&options, &host->endpoint);

	if (rv < 0)
		return rv;
	rv = mmc_fault_wrap(spec->fault, host->rank, &host->endpoint->base,
			    (enum mmc_checksum)spec->checksum,
			    spec->protect != MMC_PROTECT_OFF, endpoint);
	if (rv == 0 && spec->protect != MMC_PROTECT_OFF)
		rv = protect(host, endpoint);
	return rv;
}

static int open_buffers(struct mmc_host *host)
{
	struct mmc_stage *stage = host->stage;
	uint32_t nall = stage->spec->nstreams * stage->spec->nops;
	uint64_t nbytes = 0;
	uint8_t *part;
	int rv = 0;

	for (uint32_t i = 0; i < nall; i++)
		nbytes += stage->ops[i].part_bytes;
	if (stage->spec->zero_copy > 0)
		rv = mmc_memory_allocate(host->engine, nbytes, &host->memory);
	else
		host->memory = malloc(nbytes);
	if (rv < 0 || !host->memory)
		return -MMC_ENOMEM;
	part = host->memory;
	for (uint32_t i = 0; i < nall; i++) {
		mmc_sim_op_lay_out(&stage->ops[i], host->rank, part);
		part += stage->ops[i].part_bytes;
	}
	return 0;
}

static void close_buffers(struct mmc_host *host)
{
	if (host->stage->spec->zero_copy > 0 && host->memory)
		mmc_memory_free(host->engine, host->memory);
	else
		free(host->memory);
}

/* Returns when a rank first stalls; ranks of one machine stall together. */
static uint64_t stall_begin_ns(const struct mmc_sim_spec *spec, uint32_t rank)
{
	uint32_t machine = rank / spec->host_ranks;
	struct mmc_prng prng = {
		.state = spec->seed ^ (machine + UINT64_C(1)) << 40,
	};

	if (spec->stalled_rank != MMC_SIM_NOBODY)
		return machine == spec->stalled_rank / spec->host_ranks
			       ? spec->stall_begin_ns
			       : MMC_NEVER_NS;
	return spec->stall_begin_ns +
	       mmc_prng_below(&prng, spec->stall_period_ns);
}

int mmc_host_open(struct mmc_host *host, struct mmc_stage *stage, uint32_t rank)
{
	const struct mmc_sim_spec *spec = stage->spec;
	const struct mmc_team_options options = {
		.rank = rank,
		.nranks = spec->nranks,
		.subgroups = spec->subgroups,
		.chunk_bytes = spec->chunk_bytes / stage->scale,
		.checksum = mmc_stage_checksum(spec),
		.zero_copy = spec->zero_copy > 0,
	};
	struct mmc_endpoint *endpoint;
	int rv;

	*host = (struct mmc_host){
		.stage = stage,
		.rank = rank,
		.prng = { .state = spec->seed ^ (rank + UINT64_C(1)) << 40 },
		.wake_ns = MMC_NEVER_NS,
	};
	host->stall_begin_ns = stall_begin_ns(spec, rank);
	host->streams = calloc(spec->nstreams, sizeof(*host->streams));
	if (!host->streams)
		return -MMC_ENOMEM;
	rv = mmc_engine_create_stepped(&host->engine);
	if (rv == 0)
		rv = open_buffers(host);
	if (rv == 0)
		rv = open_endpoint(host, &endpoint);
	if (rv < 0)
		return rv;
	rv = mmc_team_create_on(host->engine, endpoint, &options,
				safe_bytes(stage, options.chunk_bytes),
				&host->team);
	if (rv == 0 && spec->adaptive)
		mmc_path_set_window(&host->team->path,
				    MMC_WINDOW_BYTES / stage->scale);
	if (rv == 0 && spec->known_mbits > 0)
		mmc_path_set_rate(&host->team->path,
				  spec->known_mbits * BYTES_PER_S_PER_MBIT /
					  stage->scale);
	return rv;
}

static int open_stream(struct mmc_host *host, uint32_t index)
{
	const struct mmc_sim_spec *spec = host->stage->spec;
	struct mmc_host_stream *stream = &host->streams[index];
	const struct mmc_stream_options options = {
		.channel = host->stage->monitor.channels[index],
		.chains = spec->chains,
		.window_bytes = spec->window_bytes / host->stage->scale,
		.eager_bytes = spec->eager_bytes / host->stage->scale,
		.repair = spec->repair,
		.code_data = (uint16_t)spec->code_data,
		.code_parity = (uint16_t)spec->code_parity,
		.code_auto = spec->code_auto != 0,
		.timeout_ns = spec->timeout_ns,
		.entry_timeout_ns = spec->entry_timeout_ns,
		.late_timeout_ns = spec->late_timeout_ns,
	};

	stream->requests = calloc(spec->nops, sizeof(struct mmc_request *));
	stream->start_ns = calloc(spec->nops, sizeof(uint64_t));
	if (!stream->requests || !stream->start_ns)
		return -MMC_ENOMEM;
	return mmc_stream_create(host->team, &options, &stream->stream);
}

int mmc_host_connect(struct mmc_host *host, const uint8_t *addresses)
{
	int rv = mmc_team_connect(host->team, addresses);

	for (uint32_t i = 0; rv >= 0 && i < host->stage->spec->nstreams; i++)
		rv = open_stream(host, i);
	return rv;
}

static void close_stream(struct mmc_host_stream *stream)
{
	for (uint32_t op = 0; op < stream->nstarted; op++)
		mmc_request_free(stream->requests[op]);
	if (stream->stream)
		mmc_stream_close(stream->stream);
	free(stream->requests);
	free(stream->start_ns);
}

void mmc_host_close(struct mmc_host *host)
{
	for (uint32_t i = 0; host->streams && i < host->stage->spec->nstreams;
	     i++)
		close_stream(&host->streams[i]);
	free(host->streams);
	if (host->team)
		mmc_team_close(host->team);
	close_buffers(host);
	if (host->engine)
		mmc_engine_destroy(host->engine);
}

/* ---- when the engine runs ------------------------------------------------ */

uint64_t mmc_host_after_stall(const struct mmc_host *host, uint64_t time_ns)
{
	const struct mmc_sim_spec *spec = host->stage->spec;
	uint64_t into_ns;

	if (spec->stall_ns == 0 || time_ns < host->stall_begin_ns)
		return time_ns;
	into_ns = (time_ns - host->stall_begin_ns) % spec->stall_period_ns;
	if (into_ns >= spec->stall_ns)
		return time_ns;
	return time_ns + spec->stall_ns - into_ns;
}

void mmc_host_wake_at(struct mmc_host *host, uint64_t time_ns)
{
	struct mmc_network *network = &host->stage->network;
	uint64_t after_ns;

	time_ns = mmc_max_u64(time_ns, mmc_max_u64(host->sending_ns,
						   host->receiving_ns));
	if (time_ns < network->now_ns)
		time_ns = network->now_ns;
	after_ns = mmc_host_after_stall(host, time_ns);
	if (after_ns > time_ns)
		mmc_monitor_on_stall(&host->stage->monitor, after_ns);
	time_ns = after_ns;
	if (time_ns >= host->wake_ns)
		return;
	host->wake_ns = time_ns;
	mmc_network_at(network, time_ns, MMC_TIMER_WAKE, host->rank);
}

bool mmc_host_step(struct mmc_host *host, uint64_t *next_ns)
{
	uint64_t npolled;

	if (host->dead || host->wake_ns != host->stage->network.now_ns)
		return false;
	host->wake_ns = MMC_NEVER_NS;
	npolled = host->endpoint->polled_datagrams;
	*next_ns = mmc_engine_step(host->engine);
	npolled = host->endpoint->polled_datagrams - npolled;
	host->receiving_ns = host->stage->network.now_ns +
			     npolled * host->stage->spec->receive_ns;
	return true;
}

void mmc_host_sleep(struct mmc_host *host, uint64_t next_ns)
{
	struct mmc_network *network = &host->stage->network;
	const struct mmc_sim_spec *spec = host->stage->spec;
	uint64_t now_ns = network->now_ns;

	host->sending_ns = now_ns + mmc_network_unsent_ns(network, host->rank,
							  spec->send_bytes);
	if (mmc_sim_endpoint_pending(host->endpoint) || next_ns <= now_ns)
		next_ns = now_ns + 1 + spec->wake_ns;
	if (next_ns != MMC_NEVER_NS)
		mmc_host_wake_at(host, next_ns);
}

void mmc_host_on_arrival(struct mmc_host *host, struct mmc_frame *frame)
{
	struct mmc_network *network = &host->stage->network;

	if (host->dead) {
		mmc_network_release(network, frame);
		return;
	}
	mmc_sim_endpoint_receive(host->endpoint, frame);
	mmc_host_wake_at(host, network->now_ns + host->stage->spec->wake_ns);
}

void mmc_host_on_place_due(struct mmc_host *host)
{
	if (host->dead)
		return;
	mmc_sim_endpoint_make_copy(host->endpoint);
	mmc_host_wake_at(host, host->stage->network.now_ns);
}

/* Only the end of a read wakes the engine. */
void mmc_host_on_read_due(struct mmc_host *host)
{
	if (host->dead)
		return;
	mmc_sim_endpoint_step_reads(host->endpoint);
	if (mmc_sim_endpoint_pending(host->endpoint))
		mmc_host_wake_at(host, host->stage->network.now_ns +
					       host->stage->spec->wake_ns);
}

/* An answer to an inquiry wakes the engine, as an arriving datagram does. */
void mmc_host_on_inquiry_due(struct mmc_host *host)
{
	if (host->dead)
		return;
	mmc_sim_inquiries_due(host->endpoint);
	if (mmc_sim_endpoint_pending(host->endpoint))
		mmc_host_wake_at(host, host->stage->network.now_ns +
					       host->stage->spec->wake_ns);
}

void mmc_host_die(struct mmc_host *host, enum mmc_sim_kernel kernel)
{
	const struct mmc_sim_spec *spec = host->stage->spec;

	if (host->dead)
		return;
	host->dead = true;
	host->stage->kernels[host->rank] = kernel;
	mmc_sim_endpoint_die(host->endpoint);
	for (uint32_t i = 0; i < spec->nstreams; i++)
		host->stage->nrunning -= spec->nops - host->streams[i].nended;
}

/* ---- counting ------------------------------------------------------------ */

void mmc_host_sum_counters(struct mmc_host *host)
{
	struct mmc_sim_rank *outcome = &host->outcome;
	struct mmc_counters counters;
	const uint64_t *value = counters.value;

	outcome->overrun_datagrams = host->endpoint->overrun_datagrams;
	for (uint32_t i = 0; i < host->stage->spec->nstreams; i++) {
		mmc_stream_counters(host->streams[i].stream, counters.value);
		outcome->lost_chunks += value[MMC_COUNT_RX_LOST_CHUNKS];
		outcome->repaired_chunks += value[MMC_COUNT_RX_REPAIRED_CHUNKS];
		outcome->duplicate_chunks +=
			value[MMC_COUNT_RX_DUPLICATE_CHUNKS];
		outcome->reads += value[MMC_COUNT_READS];
		outcome->read_chunks += value[MMC_COUNT_READ_CHUNKS];
		outcome->failed_reads += value[MMC_COUNT_FAILED_READS];
		outcome->parity_sent += value[MMC_COUNT_PARITY_SENT];
		outcome->parity_used += value[MMC_COUNT_PARITY_USED];
		outcome->groups_mended += value[MMC_COUNT_GROUPS_MENDED];
		outcome->fell_back += value[MMC_COUNT_FELL_BACK];
		outcome->zero_copy_chunks += value[MMC_COUNT_ZERO_COPY_CHUNKS];
		outcome->registrations += value[MMC_COUNT_REGISTRATIONS];
	}
	mmc_team_counters(host->team, counters.value);
	outcome->evacuated_chunks = value[MMC_COUNT_EVACUATED_CHUNKS];
	outcome->rx_forged = value[MMC_COUNT_RX_FORGED_DATAGRAMS];
	outcome->rx_replayed = value[MMC_COUNT_RX_REPLAYED_DATAGRAMS];
}
