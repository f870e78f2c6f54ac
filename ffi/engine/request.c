/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/request.h"

#include <string.h>

#include "engine/advert.h"
#include "engine/blocks.h"
#include "engine/completion.h"
#include "engine/operation.h"
#include "engine/parity.h"
#include "engine/receive.h"
#include "engine/remote/landing.h"
#include "engine/remote/requests.h"
#include "engine/spares.h"
#include "engine/threads/notify.h"
#include "support/bits.h"
#include "support/error.h"

/*
 * Blocks up to this size are copied when the operation is done, and repaired from the
 * copy, so that their senders get their buffers back without waiting for other ranks.
 */
#define RETAIN_BYTES (UINT64_C(1) << 20)

/* Returns how much of the receive buffers one sender may fill. */
static uint32_t source_bytes(const struct mmc_team *team)
{
	if (!team->endpoint->has_buffer_per_source)
		return team->buffer_bytes;
	return team->buffer_bytes / (team->options.nranks - 1);
}

/*
 * Returns the window that this rank proposes. It never exceeds the buffers, whatever was
 * measured or configured, except in a pair: whoever sets its window knows its link, and
 * most of the window is on its way there, as it is on a long path.
 */
static uint32_t window_bytes_of(const struct mmc_stream *stream)
{
	const struct mmc_team *team = stream->team;
	uint32_t wanted_bytes = stream->options.window_bytes;

	if (wanted_bytes == 0)
		wanted_bytes = mmc_path_window_bytes(&team->path);
	else if (team->options.pair != 0)
		return mmc_max_u32(wanted_bytes, team->options.chunk_bytes);
	if (wanted_bytes == 0)
		return team->buffer_bytes;
	return team->options.pair != 0 && mmc_path_is_long(&team->path)
		       ? wanted_bytes
		       : mmc_min_u32(wanted_bytes, team->buffer_bytes);
}

/*
 * Returns the most bytes that a round of the entry barrier carries. Connections keep few
 * messages, and a device multicasts at less cost than processors do.
 */
static uint32_t carried_bytes(const struct mmc_team *team)
{
	return team->endpoint->control_is_reliable
		       ? MMC_PART_BYTES
		       : MMC_PARTS_MAX * MMC_PART_BYTES;
}

/* Sets what the core needs to know of the code of an operation. */
static void configure_code(const struct mmc_stream *stream,
			   const struct mmc_operation *operation,
			   struct mmc_op_config *config)
{
	const struct mmc_stream_options *options = &stream->options;

	config->code_data = options->code_data;
	config->code_parity = options->code_parity;
	config->reliability = options->code_auto ? MMC_RELIABILITY_AUTO
						 : MMC_RELIABILITY_CODE;
	config->mends_aside = mmc_stream_has_coder(stream);
	if (operation->reliability == MMC_DECIDE_REPEAT)
		config->reliability = MMC_RELIABILITY_DECIDE_REPEAT;
	else if (operation->reliability == MMC_DECIDE_CODE)
		config->reliability = MMC_RELIABILITY_DECIDE_CODE;
}

/* Returns what the core needs to know of an operation before it starts. */
static struct mmc_op_config op_config(const struct mmc_stream *stream,
				      const struct mmc_operation *operation)
{
	const struct mmc_stream_options *options = &stream->options;
	const struct mmc_team *team = stream->team;
	uint32_t window_bytes = window_bytes_of(stream);
	struct mmc_op_config config;

	config = (struct mmc_op_config){
		.rank = team->options.rank,
		.nranks = team->options.nranks,
		.chunk_bytes = team->options.chunk_bytes,
		.nchains = options->chains,
		.window_bytes = window_bytes,
		.source_bytes =
			mmc_max_u32(source_bytes(team),
				    team->options.pair != 0 ? window_bytes : 0),
		.control_is_reliable = team->endpoint->control_is_reliable,
		.batch_chunks = team->endpoint->batch_datagrams,
		.train_chunks = team->endpoint->train_datagrams,
		.eager_bytes = options->eager_bytes,
		.carried_bytes = carried_bytes(team),
		.retain_bytes = RETAIN_BYTES,
		.repair = (enum mmc_repair)options->repair,
		.read_bytes = team->endpoint->read_bytes_max,
		.timeout_ns = options->timeout_ns,
		.entry_timeout_ns = options->entry_timeout_ns,
		.late_timeout_ns = options->late_timeout_ns,
		.inquires = team->endpoint->driver->inquire != NULL,
		.unattended = team->options.unattended != 0,
		.seed = mmc_epochs_channel(&stream->epochs) ^
			((uint64_t)team->options.rank << 32 |
			 mmc_epochs_last(&stream->epochs)),
	};
	mmc_operation_configure(operation, team->options.nranks, &config);
	if (mmc_stream_may_code(stream))
		configure_code(stream, operation, &config);
	return config;
}

/* Gives a new operation the chunks and parts that arrived before it started. */
static void hand_over_parked(struct mmc_request *request, uint64_t now_ns)
{
	struct mmc_stream *stream = request->stream;
	uint32_t epoch = mmc_op_epoch(request->op);
	const uint8_t *payload;
	struct mmc_parked parked;

	while ((payload = mmc_parking_take(&stream->parked_parts, epoch,
					   &parked)) != NULL)
		mmc_request_receive_part(request, parked.source,
					 (struct mmc_part){
						 .first = parked.first,
						 .bytes = payload,
					 },
					 parked.nbytes, now_ns);
	while ((payload = mmc_parking_take(&stream->parking, epoch, &parked)) !=
	       NULL)
		mmc_request_receive_chunk(request, parked.source, parked.index,
					  payload, parked.nbytes, now_ns);
}

/* Starts the operation of a queued request in the core. */
static void activate(struct mmc_request *request, uint64_t now_ns)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_op_config config = op_config(stream, &request->operation);
	struct mmc_op *op;

	config.generation = mmc_request_generation(request);
	if (mmc_op_may_be_coded(&config))
		mmc_request_init_parity(request,
					(uint8_t *)request->memory +
						mmc_op_footprint(&config),
					&config);
	request->reconnects = stream->team->endpoint->reconnects;
	mmc_epochs_set_path(&stream->epochs, &stream->team->path);
	op = mmc_epochs_start(&stream->epochs, request->memory, &config,
			      now_ns);
	request->op = op;
	__atomic_store_n(&request->landing, mmc_op_landing(op),
			 __ATOMIC_RELEASE);
	stream->requests[mmc_epochs_slot(mmc_op_epoch(op))] = request;
	stream->needs_poll = true;
	request->run_delay = (struct mmc_run_delay){ .thread = NULL };
	if (mmc_op_layout(op)->total_bytes > config.window_bytes &&
	    !stream->team->engine->stepped)
		request->run_delay = mmc_run_delay_look();
	hand_over_parked(request, now_ns);
}

void mmc_stream_start_queued(struct mmc_stream *stream, uint64_t now_ns)
{
	if (mmc_team_is_remote(stream->team)) {
		mmc_remote_post_queued(stream);
		return;
	}
	while (stream->queue != NULL) {
		struct mmc_request *request = stream->queue;

		if (mmc_epochs_is_poisoned(&stream->epochs))
			mmc_request_fail_poisoned(request);
		else if (!request->operation.unready &&
			 mmc_epochs_ready(&stream->epochs))
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

/*
 * Writes how much memory the core and parity need for an operation, and how long the copy is that
 * serves others. Returns 0, or -MMC_EINVAL if the operation has too many chunks.
 */
static int measure(const struct mmc_stream *stream,
		   const struct mmc_operation *operation, size_t *memory_bytes,
		   uint64_t *copy_bytes)
{
	const struct mmc_team_options *team = &stream->team->options;
	const struct mmc_op_config config = op_config(stream, operation);
	size_t nbytes = mmc_op_footprint(&config);

	if (nbytes == 0) {
		mmc_error_set("%llu bytes do not fit in %u chunks of %u bytes; "
			      "raise CHUNK_BYTES",
			      (unsigned long long)mmc_operation_total(
				      operation, team->nranks),
			      MMC_CHUNKS_MAX, team->chunk_bytes);
		return -MMC_EINVAL;
	}
	*memory_bytes = 0;
	*copy_bytes = 0;
	/* A runner has the core's state of an operation that it carries out. */
	if (mmc_team_is_remote(stream->team)) {
		*memory_bytes = mmc_remote_landing_bytes(team, operation);
		return 0;
	}
	*memory_bytes = nbytes;
	if (mmc_op_may_be_coded(&config))
		*memory_bytes += mmc_parity_bytes(&config);
	*copy_bytes = mmc_op_copy_bytes(&config);
	return 0;
}

/*
 * Returns how many operations have started and not closed, but no more than
 * MMC_EPOCHS_OPEN_MAX: no more need a copy at a time.
 */
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
 * Reserves the copy of `nbytes` that the operation takes when it is done; at least two
 * copies, so that the next operation finds one, too. Returns 0 or -MMC_ENOMEM.
 */
static int reserve_copies(struct mmc_stream *stream, uint64_t nbytes)
{
	bool needs_copy = nbytes > 0 && nbytes <= RETAIN_BYTES;
	uint32_t n = mmc_max_u32(count_live(stream) + 1, 2);
	uint32_t nmade = 0;
	int rv = 0;

	if (needs_copy)
		rv = mmc_copies_reserve(&stream->copies, nbytes,
					mmc_min_u32(n, MMC_EPOCHS_OPEN_MAX),
					&nmade);
	mmc_count(&stream->counters, MMC_COUNT_ALLOCATIONS, nmade);
	return rv;
}

/* Copies this rank's block to its place in the result, if it is not there already. */
static void put_own_block(struct mmc_request *request)
{
	const struct mmc_operation *operation = &request->operation;
	uint32_t rank = request->stream->team->options.rank;
	uint64_t nbytes = mmc_operation_block(operation, rank);

	if (operation->send != NULL && nbytes > 0)
		memcpy(request->base + mmc_operation_offset(operation, rank),
		       operation->send, nbytes);
}

/* Checks that an operation can start. Returns 0 or -MMC_EINVAL. */
static int admit(const struct mmc_stream *stream,
		 const struct mmc_operation *operation)
{
	int rv = mmc_operation_check(operation, stream->team->options.nranks);

	if (rv == 0 &&
	    (stream->leaves || mmc_epochs_has_left(&stream->epochs))) {
		mmc_error_set("this rank has left the stream and can start "
			      "nothing more on it");
		rv = -MMC_EINVAL;
	}
	return rv;
}

int mmc_request_start(struct mmc_stream *stream,
		      const struct mmc_operation *operation,
		      struct mmc_request **request)
{
	struct mmc_engine *engine = stream->team->engine;
	uint32_t nranks = stream->team->options.nranks;
	struct mmc_request *new;
	size_t memory_bytes;
	uint64_t copy_bytes;
	int rv = admit(stream, operation);

	if (rv == 0)
		rv = measure(stream, operation, &memory_bytes, &copy_bytes);
	if (rv == 0)
		rv = reserve_copies(stream, copy_bytes);
	if (rv != 0)
		return rv;
	new = mmc_request_get(
		stream, memory_bytes + mmc_operation_bytes(operation, nranks));
	if (new == NULL)
		return -MMC_ENOMEM;
	mmc_operation_copy(&new->operation, operation, nranks,
			   (uint8_t *)new->memory + memory_bytes);
	new->op = NULL;
	__atomic_store_n(&new->landing, NULL, __ATOMIC_RELAXED);
	new->base = new->operation.recv;
	if (!operation->unready)
		put_own_block(new);
	new->start_ns = mmc_team_now_ns(stream->team);
	new->failure = (struct mmc_failure){ .culprit = UINT32_MAX };
	new->held = true;
	new->unplaceable = false;
	new->notifies = operation->notifies != 0;
	if (new->notifies)
		mmc_engine_expect_notification(engine);
	__atomic_store_n(&new->complete, false, __ATOMIC_RELAXED);
	enqueue(new);
	mmc_stream_start_queued(stream, new->start_ns);
	*request = new;
	return 0;
}

void mmc_request_set_ready(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;

	if (!request->operation.unready || mmc_request_is_complete(request))
		return;
	request->operation.unready = 0;
	put_own_block(request);
	mmc_stream_start_queued(stream, mmc_team_now_ns(stream->team));
}

/* Long waits return to their callers less often: after an eighth of the time so far. */
#define SLICE_PART 8

uint64_t mmc_request_slice_ns(const struct mmc_request *request,
			      uint64_t slice_ns, uint64_t now_ns)
{
	uint64_t waited_ns = now_ns - request->start_ns;

	if (request->op == NULL || !mmc_op_has_begun(request->op))
		return slice_ns;
	return mmc_max_u64(slice_ns, mmc_min_u64(waited_ns / SLICE_PART,
						 MMC_SLICES_MAX * slice_ns));
}
