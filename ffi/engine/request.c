/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/request.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory.h"
#include "engine/notify.h"
#include "engine/operation.h"
#include "engine/placement.h"
#include "engine/receive.h"
#include "support/error.h"

/* Blocks up to this size are copied: their senders need not wait for other ranks. */
#define RETAIN_BYTES (UINT64_C(1) << 20)

/* ---- memory ------------------------------------------------------------- */

/* Deregisters the user's memory; after a failure, when the team closes. */
static void revoke(struct mmc_request *request, bool failed)
{
	struct mmc_team *team = request->stream->team;

	if (request->registered && failed)
		mmc_team_deregister_later(team, &request->data, NULL);
	else if (request->registered)
		mmc_team_deregister(team, &request->data);
	request->registered = false;
}

/* Frees a request's memory: after a failure, if registered, when the team closes. */
static void free_memory(struct mmc_request *request, bool failed)
{
	struct mmc_team *team = request->stream->team;

	if (request->mapped && failed) {
		mmc_team_deregister_later(team, &request->map, request->memory);
		return;
	}
	if (request->mapped)
		mmc_team_deregister(team, &request->map);
	free(request->memory);
}

static void free_request(struct mmc_request *request)
{
	bool given_up;

	if (request == NULL)
		return;
	given_up = request->op != NULL && !mmc_request_over(request);
	mmc_request_end_placement(request, true);
	if (given_up) {
		mmc_op_close_advert(request->op);
		mmc_request_forget_fetches(request);
		request->stream->team->failed = true;
	}
	given_up |= request->stream->epochs.poison.error != MMC_OK;
	if (request->notifies)
		mmc_engine_notify(request->stream->team->engine);
	revoke(request, given_up);
	free_memory(request, given_up);
	mmc_copies_give(&request->stream->copies, request->copy);
	free(request);
}

static struct mmc_request *new_request(struct mmc_stream *stream,
				       size_t memory_bytes)
{
	struct mmc_request *request = calloc(1, sizeof(*request));

	if (request == NULL)
		return NULL;
	request->stream = stream;
	request->memory = aligned_alloc(64, (memory_bytes + 63) / 64 * 64);
	request->memory_bytes = memory_bytes;
	mmc_count(&stream->counters, MMC_COUNT_ALLOCATIONS, 1);
	if (request->memory != NULL &&
	    stream->options.repair == MMC_REPAIR_READ)
		request->mapped =
			mmc_team_register(stream->team, request->memory,
					  memory_bytes, &stream->counters,
					  &request->map) == 0;
	if (request->memory != NULL)
		return request;
	free_request(request);
	return NULL;
}

/* Takes a spare that is large enough out of the list. Returns NULL if there is none. */
static struct mmc_request *take_spare(struct mmc_stream *stream,
				      size_t memory_bytes)
{
	for (struct mmc_request **at = &stream->spares; *at != NULL;
	     at = &(*at)->next) {
		struct mmc_request *spare = *at;

		if (spare->memory_bytes < memory_bytes)
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

/* Frees all spares when a new shape comes: spares of other shapes would pile up. */
static void free_spares(struct mmc_stream *stream)
{
	while (stream->spares != NULL) {
		struct mmc_request *spare = stream->spares;

		stream->spares = spare->next;
		free_request(spare);
	}
}

/*
 * Returns a request with memory for one operation, or NULL. A new one comes with a
 * spare: the next operation starts while this one still serves repairs from its copy.
 */
static struct mmc_request *get_request(struct mmc_stream *stream,
				       size_t memory_bytes)
{
	struct mmc_request *request = take_spare(stream, memory_bytes);
	struct mmc_request *further;

	if (request != NULL)
		return request;
	free_spares(stream);
	request = new_request(stream, memory_bytes);
	further = new_request(stream, memory_bytes);
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
	mmc_copies_clear(&stream->copies);
}

static void finish(struct mmc_request *request)
{
	__atomic_store_n(&request->over, true, __ATOMIC_RELEASE);
	request->base = NULL;
	request->stream->team->engine->nfinished++;
	if (request->notifies)
		mmc_engine_notify(request->stream->team->engine);
	request->notifies = false;
}

/* ---- starting ----------------------------------------------------------- */

static uint32_t source_bytes(const struct mmc_team *team)
{
	if (!team->endpoint->apart)
		return team->buffer_bytes;
	return team->buffer_bytes / (team->options.nranks - 1);
}

static struct mmc_op_config op_config(const struct mmc_stream *stream,
				      const struct mmc_operation *operation)
{
	const struct mmc_stream_options *options = &stream->options;
	const struct mmc_team *team = stream->team;
	uint32_t window_bytes = team->buffer_bytes;
	struct mmc_op_config config;

	/* More than the buffers hold would be lost, whatever was configured. */
	if (options->window_bytes == 0 && team->path.window.bytes != 0)
		window_bytes =
			mmc_min_u32(team->path.window.bytes, window_bytes);
	if (options->window_bytes != 0)
		window_bytes = mmc_min_u32(options->window_bytes, window_bytes);
	config = (struct mmc_op_config){
		.rank = team->options.rank,
		.nranks = team->options.nranks,
		.chunk_bytes = team->options.chunk_bytes,
		.nchains = options->chains,
		.window_bytes = window_bytes,
		.source_bytes = source_bytes(team),
		.reliable = team->endpoint->reliable,
		.batch_chunks = team->endpoint->batch_datagrams,
		.eager_bytes = options->eager_bytes,
		.retain_bytes = RETAIN_BYTES,
		.repair = (enum mmc_repair)options->repair,
		.read_bytes = team->endpoint->read_bytes_max,
		.timeout_ns = options->timeout_ns,
		.entry_timeout_ns = options->entry_timeout_ns,
		.late_timeout_ns = options->late_timeout_ns,
		.inquires = team->endpoint->driver->inquire != NULL,
		.unattended = team->options.unattended != 0,
		.seed = stream->epochs.channel ^
			((uint64_t)team->options.rank << 32 |
			 stream->epochs.last),
	};
	mmc_operation_configure(operation, team->options.nranks, &config);
	return config;
}

/* Offers to a new operation the chunks that arrived before it started. */
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

/* Returns the advert of what other ranks may read from the start. */
static struct mmc_advert first_advert(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	struct mmc_advert advert = { 0 };
	struct mmc_region data;

	/* Blocks at offsets of their own are sent, and not read. */
	if (!request->mapped || request->operation.offsets_bytes != NULL)
		return advert;
	advert.generation = next_generation(team);
	advert.map_address = request->map.address;
	advert.map_key = request->map.key;
	advert.has_data = mmc_team_find_region(
		team, request->base,
		mmc_operation_total(&request->operation, team->options.nranks),
		&stream->counters, &data);
	if (advert.has_data) {
		advert.data_address = data.address;
		advert.data_key = data.key;
	}
	return advert;
}

void mmc_request_register(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	uint64_t nbytes = request->op->layout.total_bytes;
	struct mmc_region *data = &request->data;

	request->registered = mmc_team_register(team, request->base, nbytes,
						&stream->counters, data) == 0;
	mmc_op_registered(request->op, request->registered, data->address,
			  data->key);
}

static void activate(struct mmc_request *request, uint64_t now_ns)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_op_config config = op_config(stream, &request->operation);
	struct mmc_op *op;

	config.advert = first_advert(request);
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
	const struct mmc_poison *poison = &request->stream->epochs.poison;

	request->failure = (struct mmc_failure){
		.error = -MMC_EPOISONED,
		.epoch = poison->epoch,
		.culprit = poison->culprit,
	};
	finish(request);
}

void mmc_stream_start_queued(struct mmc_stream *stream, uint64_t now_ns)
{
	while (stream->queue != NULL) {
		struct mmc_request *request = stream->queue;

		if (stream->epochs.poison.error != MMC_OK)
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
	struct mmc_stream *stream = request->stream;

	request->next = NULL;
	if (stream->queue == NULL)
		stream->queue = request;
	else
		stream->queue_last->next = request;
	stream->queue_last = request;
}

/* Writes the bytes that the core needs for an operation. Returns 0 or -MMC_EINVAL. */
static int measure(const struct mmc_stream *stream,
		   const struct mmc_operation *operation, size_t *memory_bytes)
{
	const struct mmc_team_options *team = &stream->team->options;
	const struct mmc_op_config config = op_config(stream, operation);
	size_t nbytes = mmc_op_footprint(&config);

	if (nbytes == 0) {
		mmc_error_set("%llu bytes are more than %u chunks of %u bytes; "
			      "raise CHUNK_BYTES",
			      (unsigned long long)mmc_operation_total(
				      operation, team->nranks),
			      MMC_CHUNKS_MAX, team->chunk_bytes);
		return -MMC_EINVAL;
	}
	*memory_bytes = nbytes;
	return 0;
}

/* Counts operations that have started and not closed, as far as copies matter. */
static uint32_t count_live(const struct mmc_stream *stream)
{
	const struct mmc_request *queued = stream->queue;
	uint32_t nlive = 0;

	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++)
		nlive += stream->requests[i] != NULL;
	for (; queued != NULL && nlive < MMC_EPOCHS_OPEN_MAX; nlive++)
		queued = queued->next;
	return nlive;
}

/*
 * Reserves a copy of this rank's block for the time after the operation, and one more
 * for the next operation. Returns 0 or -MMC_ENOMEM.
 */
static int reserve_copies(struct mmc_stream *stream,
			  const struct mmc_operation *operation)
{
	uint64_t nbytes =
		mmc_operation_block(operation, stream->team->options.rank);
	bool copies = stream->options.repair == MMC_REPAIR_NAK && nbytes > 0 &&
		      nbytes <= RETAIN_BYTES;
	uint32_t n = mmc_max_u32(count_live(stream) + 1, 2);
	uint32_t nmade = 0;
	int rv = 0;

	if (copies)
		rv = mmc_copies_reserve(&stream->copies, nbytes,
					mmc_min_u32(n, MMC_EPOCHS_OPEN_MAX),
					&nmade);
	mmc_count(&stream->counters, MMC_COUNT_ALLOCATIONS, nmade);
	return rv;
}

static void put_own_block(struct mmc_request *request)
{
	const struct mmc_operation *operation = &request->operation;
	uint32_t rank = request->stream->team->options.rank;
	uint64_t nbytes = mmc_operation_block(operation, rank);

	if (operation->send != NULL && nbytes > 0)
		memcpy(request->base + mmc_operation_offset(operation, rank),
		       operation->send, nbytes);
}

int mmc_request_start(struct mmc_stream *stream,
		      const struct mmc_operation *operation,
		      struct mmc_request **request)
{
	const struct mmc_team_options *team = &stream->team->options;
	struct mmc_request *new;
	size_t memory_bytes;
	int rv = mmc_operation_check(operation, team->nranks);

	if (rv == 0 && stream->epochs.left) {
		mmc_error_set("this rank has left the stream");
		rv = -MMC_EINVAL;
	}
	if (rv == 0)
		rv = measure(stream, operation, &memory_bytes);
	if (rv == 0)
		rv = reserve_copies(stream, operation);
	if (rv != 0)
		return rv;
	new = get_request(stream,
			  memory_bytes +
				  mmc_operation_bytes(operation, team->nranks));
	if (new == NULL)
		return -MMC_ENOMEM;
	mmc_operation_copy(&new->operation, operation, team->nranks,
			   (uint8_t *)new->memory + memory_bytes);
	new->op = NULL;
	new->base = new->operation.recv;
	put_own_block(new);
	new->start_ns = mmc_team_now_ns(stream->team);
	new->failure = (struct mmc_failure){ .culprit = UINT32_MAX };
	new->held = true;
	new->staged = false;
	new->notifies = operation->notifies != 0;
	if (new->notifies)
		mmc_engine_expect(stream->team->engine);
	__atomic_store_n(&new->over, false, __ATOMIC_RELAXED);
	enqueue(new);
	mmc_stream_start_queued(stream, new->start_ns);
	*request = new;
	return 0;
}

/* ---- ending ------------------------------------------------------------- */

/* Ends remote access to the result. Ranks that have failed may still be reading it. */
static void end_reading(struct mmc_request *request)
{
	bool failed = (request->op->record.flags & MMC_RECORD_FAILED) != 0;

	request->stream->team->failed |= failed;
	mmc_request_end_placement(request, false);
	revoke(request, failed);
	mmc_request_forget_fetches(request);
}

void mmc_request_done(struct mmc_request *request, bool retain)
{
	struct mmc_stream *stream = request->stream;
	const struct mmc_block *own = &request->op->own;

	stream->team->path = stream->epochs.path;
	end_reading(request);
	if (retain && own->nbytes > 0) {
		request->copy = mmc_copies_take(&stream->copies);
		memcpy(request->copy->bytes,
		       mmc_request_address(request, own->first), own->nbytes);
	}
	finish(request);
}

void mmc_request_failed(struct mmc_request *request)
{
	const struct mmc_op *op = request->op;
	const struct mmc_record *record = &op->record;

	request->failure = (struct mmc_failure){
		.error = -(int)record->failure,
		.epoch = op->config.epoch,
		.culprit = record->culprit,
		.missing_chunks = op->layout.nchunks - op->npresent,
	};
	mmc_operation_differ(&op->record.terms, &request->failure);
	end_reading(request);
	finish(request);
}

void mmc_request_closed(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	uint32_t slot = request->op->config.epoch % MMC_EPOCHS_OPEN_MAX;

	stream->requests[slot] = NULL;
	request->op = NULL;
	mmc_copies_give(&stream->copies, request->copy);
	request->copy = NULL;
	mmc_request_recycle(request);
}
