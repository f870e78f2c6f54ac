/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a stream of three; the test plays the other two. */
#ifndef MMC_TESTS_ONE_STREAM_H
#define MMC_TESTS_ONE_STREAM_H

#include "check.h"
#include "core/operation/epochs.h"
#include "support/memory.h"

#define NRANKS 3
#define RANK 0

static const struct mmc_op_config config = {
	.signature = 7,
	.nranks = NRANKS,
	.block_bytes = 100,
	.chunk_bytes = 100,
	.window_bytes = 60000,
	.timeout_ns = 10 * MMC_S_NS,
};

struct stream {
	struct mmc_epochs epochs;
	void *epochs_memory;
	struct mmc_counters counters;
	struct mmc_actions actions;
	struct mmc_message said; /* what ask() decoded last */
	uint32_t said_epoch;
	void *memory[16];
	unsigned nmemory;
	uint64_t now_ns;
};

/* Opens a stream as if `last` epochs were done. */
static inline void stream_open(struct stream *stream, uint32_t last)
{
	*stream = (struct stream){ .now_ns = MMC_S_NS };
	stream->epochs_memory =
		aligned_alloc(MMC_ALIGN_BYTES, mmc_epochs_bytes(NRANKS));
	mmc_epochs_init(&stream->epochs, stream->epochs_memory,
			UINT64_C(9) << 16, RANK, NRANKS, &stream->counters);
	stream->epochs.last = last;
	stream->epochs.done = last;
}

static inline void stream_close(struct stream *stream)
{
	while (stream->nmemory > 0)
		free(stream->memory[--stream->nmemory]);
	free(stream->epochs_memory);
}

static inline struct mmc_op *start(struct stream *stream)
{
	void *memory =
		aligned_alloc(MMC_ALIGN_BYTES, mmc_op_footprint(&config));

	stream->memory[stream->nmemory++] = memory;
	return mmc_epochs_start(&stream->epochs, memory, &config,
				stream->now_ns);
}

static inline void poll(struct stream *stream)
{
	mmc_actions_init(&stream->actions, MMC_CHECKSUM_OFF);
	mmc_epochs_poll(&stream->epochs, stream->now_ns, &stream->actions);
}

static inline void hear(struct stream *stream, uint32_t source, uint32_t epoch,
			const struct mmc_message *message)
{
	mmc_epochs_on_message(&stream->epochs, source, epoch, message,
			      stream->now_ns);
}

/* Asks about an epoch as rank 1 would; returns whether it is answered. */
static inline bool ask(struct stream *stream, uint32_t epoch, uint32_t stamp_us)
{
	const struct mmc_message question = { .stamp_us = stamp_us };
	const struct mmc_actions *actions = &stream->actions;

	hear(stream, 1, epoch, &question);
	poll(stream);
	for (uint32_t i = 0; i < actions->count; i++) {
		const struct mmc_action *action = &actions->items[i];
		const uint8_t *bytes = actions->arena + action->offset;
		struct mmc_header header;

		if (action->kind != MMC_ACTION_CONTROL || action->peer != 1)
			continue;
		CHECK_EQ(mmc_header_decode(&header, bytes, action->nbytes,
					   MMC_CHECKSUM_OFF),
			 0);
		CHECK_EQ(mmc_message_decode(&stream->said,
					    header.index & MMC_INDEX_MASK,
					    bytes + MMC_HEADER_BYTES,
					    action->nbytes - MMC_HEADER_BYTES),
			 0);
		if (header.epoch == epoch && stream->said.echo_us == stamp_us)
			return true;
	}
	return false;
}

static inline struct mmc_message entered(uint32_t entry_rounds)
{
	return (struct mmc_message){
		.record = {
			.flags = MMC_RECORD_ENTERED,
			.entry_rounds = (uint8_t)entry_rounds,
			.terms = { 7, 7, 60000, 60000, 100, 1, 0 },
		},
	};
}

#endif
