/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/request.h"

#include <stdlib.h>
#include <string.h>

#include "drivers/error.h"
#include "engine/covering.h"
#include "engine/memory.h"
#include "engine/receive.h"
#include "engine/tell.h"

/* A block up to this is copied, so that its sender need not wait for others. */
#define RETAIN_BYTES (UINT64_C(1) << 20)

/* The kinds of operations, in the highest byte of a signature. */
#define SIGNATURE_ALLGATHER 1
#define SIGNATURE_BYTES_MASK ((UINT64_C(1) << 56) - 1)

/* ---- memory ------------------------------------------------------------- */

/* Nobody reads the user's memory any more, unless something has failed. */
static void conceal(struct mmc_request *request, bool failed)
{
	struct mmc_team *team = request->stream->team;

	if (request->exposed && failed)
		mmc_team_bury(team, &request->data, NULL);
	else if (request->exposed)
		mmc_team_withdraw(team, &request->data);
	request->exposed = false;
}

/* Likewise the memory of its operations, which is then freed. */
static void free_memory(struct mmc_request *request, bool failed)
{
	struct mmc_team *team = request->stream->team;

	if (request->mapped && failed) {
		mmc_team_bury(team, &request->map, request->memory);
		return;
	}
	if (request->mapped)
		mmc_team_withdraw(team, &request->map);
	free(request->memory);
}

static void free_request(struct mmc_request *request)
{
	bool given_up;

	if (request == NULL)
		return;
	given_up = request->op != NULL && !mmc_request_over(request);
	mmc_request_uncover(request, true);
	if (given_up) {
		mmc_op_close_card(request->op);
		mmc_request_forget_fetches(request);
		request->stream->team->failed = true;
	}
	given_up |= request->stream->epochs.fault.error != MMC_OK;
	if (request->tells)
		mmc_engine_tell(request->stream->team->engine);
	conceal(request, given_up);
	free_memory(request, given_up);
	free(request->copy);
	free(request);
}

static struct mmc_request *new_request(struct mmc_stream *stream,
				       size_t memory_bytes, size_t copy_bytes)
{
	struct mmc_request *request = calloc(1, sizeof(*request));

	if (request == NULL)
		return NULL;
	request->stream = stream;
	request->memory = aligned_alloc(64, (memory_bytes + 63) / 64 * 64);
	request->memory_bytes = memory_bytes;
	request->copy_bytes = copy_bytes;
	if (copy_bytes > 0)
		request->copy = malloc(copy_bytes);
	mmc_count(&stream->counters, MMC_COUNT_ALLOCATIONS, 1);
	if (request->memory != NULL &&
	    stream->options.repair == MMC_REPAIR_READ)
		request->mapped = mmc_team_expose(stream->team, request->memory,
						  memory_bytes,
						  &stream->counters,
						  &request->map) == 0;
	if (request->memory != NULL &&
	    (copy_bytes == 0 || request->copy != NULL))
		return request;
	free_request(request);
	return NULL;
}

/* Takes a spare that is large enough out of the list, or returns NULL. */
static struct mmc_request *take_spare(struct mmc_stream *stream,
				      size_t memory_bytes, size_t copy_bytes)
{
	for (struct mmc_request **at = &stream->spares; *at != NULL;
	     at = &(*at)->next) {
		struct mmc_request *spare = *at;

		if (spare->memory_bytes < memory_bytes ||
		    spare->copy_bytes < copy_bytes)
			continue;
		*at = spare->next;
		return spare;
	}
	return NULL;
}

static void add_spare(struct mmc_stream *stream, struct mmc_request *request)
{
	request->next = stream->spares;
	stream->spares = request;
}

/* Spares of other shapes go when a new shape comes, or they would pile up. */
static void free_spares(struct mmc_stream *stream)
{
	while (stream->spares != NULL) {
		struct mmc_request *spare = stream->spares;

		stream->spares = spare->next;
		free_request(spare);
	}
}

/*
 * Memory for one operation. A further one is made at the same time: the next
 * operation starts while this one still serves others from its copy.
 */
static struct mmc_request *get_request(struct mmc_stream *stream,
				       size_t memory_bytes, size_t copy_bytes)
{
	struct mmc_request *request =
		take_spare(stream, memory_bytes, copy_bytes);
	struct mmc_request *further;

	if (request != NULL)
		return request;
	free_spares(stream);
	request = new_request(stream, memory_bytes, copy_bytes);
	further = new_request(stream, memory_bytes, copy_bytes);
	if (further != NULL)
		add_spare(stream, further);
	return request;
}

void mmc_request_recycle(struct mmc_request *request)
{
	if (!request->held && request->op == NULL && mmc_request_over(request))
		add_spare(request->stream, request);
}

void mmc_stream_drop_requests(struct mmc_stream *stream)
{
	free_spares(stream);
	while (stream->queue != NULL) {
		struct mmc_request *queued = stream->queue;

		stream->queue = queued->next;
		free_request(queued);
	}
	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++)
		free_request(stream->requests[i]);
}

static void finish(struct mmc_request *request)
{
	__atomic_store_n(&request->over, true, __ATOMIC_RELEASE);
	request->base = NULL;
	request->stream->team->engine->nfinished++;
	if (request->tells)
		mmc_engine_tell(request->stream->team->engine);
	request->tells = false;
}

/* ---- starting ----------------------------------------------------------- */

static struct mmc_op_config op_config(const struct mmc_stream *stream,
				      uint64_t block_bytes)
{
	const struct mmc_stream_options *options = &stream->options;
	const struct mmc_team *team = stream->team;
	uint32_t window_bytes = team->buffer_bytes;

	/* What no buffer holds would be lost, whoever wishes for it. */
	if (options->window_bytes == 0 && team->path.window_bytes != 0)
		window_bytes =
			mmc_min_u32(team->path.window_bytes, window_bytes);
	if (options->window_bytes != 0)
		window_bytes = mmc_min_u32(options->window_bytes, window_bytes);
	return (struct mmc_op_config){
		.rank = team->options.rank,
		.nranks = team->options.nranks,
		.signature = (uint64_t)SIGNATURE_ALLGATHER << 56 | block_bytes,
		.block_bytes = block_bytes,
		.chunk_bytes = team->options.chunk_bytes,
		.nchains = options->chains,
		.window_bytes = window_bytes,
		.apart = team->endpoint->apart,
		.reliable = team->endpoint->reliable,
		.eager_bytes = options->eager_bytes,
		.retain_bytes = RETAIN_BYTES,
		.repair = (enum mmc_repair)options->repair,
		.read_bytes = team->endpoint->read_bytes_max,
		.timeout_ns = options->timeout_ns,
		.entry_timeout_ns = options->entry_timeout_ns,
		.seed = stream->epochs.channel ^
			((uint64_t)team->options.rank << 32 |
			 stream->epochs.last),
	};
}

/* Brings what came before it started to a new operation. */
static void hand_over_parked(struct mmc_request *request, uint64_t now_ns)
{
	struct mmc_parking *parking = &request->stream->parking;
	uint32_t epoch = request->op->config.epoch;
	const uint8_t *payload;
	struct mmc_parked parked;

	while ((payload = mmc_parking_take(parking, epoch, &parked)) != NULL)
		mmc_request_chunk(request, parked.source, parked.index, payload,
				  parked.nbytes, now_ns);
}

static uint64_t next_generation(struct mmc_team *team)
{
	team->generation++;
	team->generation += team->generation == 0;
	return team->generation;
}

/* What others may read from the start. */
static struct mmc_card first_card(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	struct mmc_card card = { 0 };
	struct mmc_region data;

	if (!request->mapped)
		return card;
	card.generation = next_generation(team);
	card.map_address = request->map.address;
	card.map_key = request->map.key;
	card.exposed = mmc_team_find_region(team, request->base,
					    team->options.nranks *
						    request->block_bytes,
					    &stream->counters, &data);
	if (card.exposed) {
		card.data_address = data.address;
		card.data_key = data.key;
	}
	return card;
}

void mmc_request_expose(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	uint64_t nbytes = team->options.nranks * request->block_bytes;
	struct mmc_region *data = &request->data;

	request->exposed = mmc_team_expose(team, request->base, nbytes,
					   &stream->counters, data) == 0;
	mmc_op_exposed(request->op, request->exposed, data->address, data->key);
}

static void activate(struct mmc_request *request, uint64_t now_ns)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_op_config config = op_config(stream, request->block_bytes);
	struct mmc_op *op;

	config.card = first_card(request);
	stream->epochs.path = stream->team->path;
	op = mmc_epochs_start(&stream->epochs, request->memory, &config,
			      now_ns);
	request->op = op;
	stream->requests[op->config.epoch % MMC_EPOCHS_OPEN_MAX] = request;
	stream->stirred = true;
	hand_over_parked(request, now_ns);
}

static void fail_poisoned(struct mmc_request *request)
{
	const struct mmc_fault *fault = &request->stream->epochs.fault;

	request->failure = (struct mmc_failure){
		.error = -MMC_EPOISONED,
		.epoch = fault->epoch,
		.culprit = fault->culprit,
	};
	finish(request);
}

void mmc_stream_start_queued(struct mmc_stream *stream, uint64_t now_ns)
{
	while (stream->queue != NULL) {
		struct mmc_request *request = stream->queue;

		if (stream->epochs.fault.error != MMC_OK)
			fail_poisoned(request);
		else if (mmc_epochs_ready(&stream->epochs))
			activate(request, now_ns);
		else
			return;
		stream->queue = request->next;
		mmc_request_recycle(request);
	}
}

static void enqueue(struct mmc_request *request)
{
	struct mmc_request **at = &request->stream->queue;

	while (*at != NULL)
		at = &(*at)->next;
	request->next = NULL;
	*at = request;
}

int mmc_request_start(struct mmc_stream *stream,
		      const struct mmc_operation *operation,
		      struct mmc_request **request)
{
	const struct mmc_team_options *team = &stream->team->options;
	uint64_t block_bytes = operation->block_bytes;
	struct mmc_op_config config = op_config(stream, block_bytes);
	bool copies = config.repair == MMC_REPAIR_NAK &&
		      block_bytes <= RETAIN_BYTES;
	size_t memory_bytes = mmc_op_footprint(&config);
	uint8_t *base = operation->recv;
	struct mmc_request *new;

	if (memory_bytes == 0) {
		mmc_error_set("%llu bytes a rank are more than %u chunks of %u "
			      "bytes; raise CHUNK_BYTES",
			      (unsigned long long)block_bytes, MMC_CHUNKS_MAX,
			      team->chunk_bytes);
		return -MMC_EINVAL;
	}
	new = get_request(stream, memory_bytes, copies ? block_bytes : 0);
	if (new == NULL)
		return -MMC_ENOMEM;
	if (operation->send != NULL && block_bytes > 0)
		memcpy(base + team->rank * block_bytes, operation->send,
		       block_bytes);
	new->op = NULL;
	new->base = base;
	new->block_bytes = block_bytes;
	new->start_ns = mmc_team_now_ns(stream->team);
	new->failure = (struct mmc_failure){ .culprit = UINT32_MAX };
	new->held = true;
	new->uncoverable = false;
	new->tells = operation->tells != 0;
	if (new->tells)
		mmc_engine_expect(stream->team->engine);
	__atomic_store_n(&new->over, false, __ATOMIC_RELAXED);
	enqueue(new);
	mmc_stream_start_queued(stream, new->start_ns);
	*request = new;
	return 0;
}

/* ---- ending ------------------------------------------------------------- */

/* Who is through although others have failed may still be read by them. */
static void end_reading(struct mmc_request *request)
{
	bool failed = (request->op->record.flags & MMC_RECORD_FAILED) != 0;

	request->stream->team->failed |= failed;
	mmc_request_uncover(request, false);
	conceal(request, failed);
	mmc_request_forget_fetches(request);
}

void mmc_request_done(struct mmc_request *request, bool retain)
{
	struct mmc_team *team = request->stream->team;
	uint64_t offset = team->options.rank * request->block_bytes;

	team->path = request->stream->epochs.path;
	end_reading(request);
	if (retain && request->block_bytes > 0)
		memcpy(request->copy, request->base + offset,
		       request->block_bytes);
	finish(request);
}

void mmc_request_failed(struct mmc_request *request)
{
	const struct mmc_op *op = request->op;
	const struct mmc_record *record = &op->record;
	const struct mmc_terms *terms = &record->terms;

	request->failure = (struct mmc_failure){
		.error = -(int)record->failure,
		.epoch = op->config.epoch,
		.culprit = record->culprit,
		.missing_chunks = op->layout.nchunks - op->npresent,
		.block_bytes_min = terms->signature_min & SIGNATURE_BYTES_MASK,
		.block_bytes_max = terms->signature_max & SIGNATURE_BYTES_MASK,
	};
	end_reading(request);
	finish(request);
}

void mmc_request_closed(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	uint32_t slot = request->op->config.epoch % MMC_EPOCHS_OPEN_MAX;

	stream->requests[slot] = NULL;
	request->op = NULL;
	mmc_request_recycle(request);
}
