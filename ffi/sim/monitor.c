/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/monitor.h"

#include <stdlib.h>
#include <string.h>

#include "sim/wire.h"
#include "support/bits.h"
#include "support/timer.h"

static bool alloc_op(struct mmc_monitor_op *seen, const struct mmc_sim_op *op)
{
	uint32_t nchunks = op->layout.nchunks;
	uint64_t *sent = malloc(mmc_bitmap_bytes(nchunks) + 1);
	uint64_t *asked = malloc(mmc_bitmap_bytes(nchunks) + 1);

	seen->op = op;
	seen->done = calloc(op->layout.nranks, sizeof(*seen->done));
	seen->released = calloc(op->layout.nranks, sizeof(*seen->released));
	seen->control = calloc(op->layout.nranks, sizeof(*seen->control));
	seen->excused = calloc(op->layout.nranks, sizeof(*seen->excused));
	seen->window_bytes = UINT32_MAX;
	seen->source_bytes = UINT32_MAX;
	seen->nchains = 1;
	if (sent)
		mmc_bitmap_init(&seen->sent, sent, nchunks);
	if (asked)
		mmc_bitmap_init(&seen->asked, asked, nchunks);
	return sent && asked && seen->done && seen->released && seen->control &&
	       seen->excused;
}

int mmc_monitor_init(struct mmc_monitor *monitor, const struct mmc_sim_op *all)
{
	uint32_t nall = monitor->nstreams * monitor->nops;

	monitor->drop_kind = MMC_CONTROL_COUNT;
	monitor->ops = calloc(nall, sizeof(*monitor->ops));
	monitor->sent = calloc(monitor->nranks, sizeof(*monitor->sent));
	if (!monitor->ops || !monitor->sent)
		goto out_free;
	for (uint32_t i = 0; i < nall; i++)
		if (!alloc_op(&monitor->ops[i], &all[i]))
			goto out_free;
	return 0;
out_free:
	mmc_monitor_free(monitor);
	return -MMC_ENOMEM;
}

void mmc_monitor_free(struct mmc_monitor *monitor)
{
	uint32_t nall = monitor->nstreams * monitor->nops;

	for (uint32_t i = 0; monitor->ops && i < nall; i++) {
		free(monitor->ops[i].sent.words);
		free(monitor->ops[i].asked.words);
		free(monitor->ops[i].done);
		free(monitor->ops[i].released);
		free(monitor->ops[i].control);
		free(monitor->ops[i].excused);
	}
	free(monitor->ops);
	free(monitor->sent);
	monitor->ops = NULL;
	monitor->sent = NULL;
}

void mmc_monitor_on_start(struct mmc_monitor *monitor, uint32_t op)
{
	monitor->ops[op].entered++;
}

void mmc_monitor_on_release(struct mmc_monitor *monitor, uint32_t op,
			    uint32_t rank)
{
	monitor->ops[op].released[rank] = true;
}

void mmc_monitor_on_stall(struct mmc_monitor *monitor, uint64_t end_ns)
{
	monitor->stall_end_ns = mmc_max_u64(monitor->stall_end_ns, end_ns);
}

static void violate(struct mmc_monitor *monitor, const struct mmc_wire *wire,
		    const char *what)
{
	mmc_finding_add(monitor->finding, monitor->network->now_ns,
			"rank %u, stream %u, operation %u, %s %u: %s",
			wire->frame->source, wire->stream, wire->index,
			wire->control ? "message" : "chunk",
			wire->header.index & MMC_INDEX_MASK, what);
}

/* Returns whether an operation is eager (PROTOCOL.md) and skips the entry barrier. */
static bool is_eager(const struct mmc_monitor *monitor,
		     const struct mmc_layout *layout)
{
	return layout->nchunks <= layout->nsenders &&
	       layout->total_bytes <= monitor->eager_bytes;
}

static bool payload_is_right(const struct mmc_monitor_op *seen,
			     const struct mmc_wire *wire, uint32_t chunk)
{
	const struct mmc_layout *layout = &seen->op->layout;
	uint32_t nbytes = mmc_layout_payload(layout, chunk);

	return wire->body_bytes == nbytes &&
	       memcmp(wire->body,
		      seen->op->truth + mmc_layout_offset(layout, chunk),
		      nbytes) == 0;
}

/*
 * Returns whether a chunk was multicast to the right subgroup. Also returns true where
 * that depends on a number of chains which the ranks choose and the monitor cannot
 * know.
 */
static bool subgroup_is_right(const struct mmc_monitor *monitor,
			      const struct mmc_layout *layout,
			      const struct mmc_frame *frame, uint32_t chunk)
{
	uint32_t chain = mmc_layout_block(layout, frame->source).number;

	if (!monitor->by_chain)
		return frame->subgroup == chunk % monitor->subgroups;
	if (!is_eager(monitor, layout) && monitor->chains != 0)
		chain %= monitor->chains;
	return frame->subgroup == chain % monitor->subgroups ||
	       monitor->chains == 0;
}

/*
 * The functions ..._flaw() return what is wrong with a datagram, or NULL. They also
 * record what the datagram sends, asks for or says, to judge later ones by.
 */
static const char *multicast_flaw(struct mmc_monitor *monitor,
				  struct mmc_monitor_op *seen,
				  const struct mmc_wire *wire, uint32_t chunk)
{
	const struct mmc_layout *layout = &seen->op->layout;

	if (seen->carried)
		return "multicast although messages carry the blocks";
	if (wire->frame->peer != MMC_PEER_ALL)
		return "first sent by unicast, not by multicast";
	if (mmc_layout_owner(layout, chunk) != wire->frame->source)
		return "multicast by a rank that does not own it";
	if (!subgroup_is_right(monitor, layout, wire->frame, chunk))
		return "multicast to the wrong subgroup";
	if (mmc_bitmap_test_and_set(&seen->sent, chunk))
		return "multicast twice";
	if (seen->entered < monitor->nranks && !is_eager(monitor, layout))
		return "multicast before all ranks had entered";
	return NULL;
}

static const char *repair_flaw(const struct mmc_monitor *monitor,
			       const struct mmc_monitor_op *seen,
			       const struct mmc_wire *wire, uint32_t chunk)
{
	const struct mmc_layout *layout = &seen->op->layout;

	if (!mmc_bitmap_test(&seen->asked, chunk))
		return "repaired although no rank asked for it";
	if (monitor->repair == MMC_REPAIR_NAK && !seen->unicast &&
	    mmc_layout_owner(layout, chunk) != wire->frame->source)
		return "repaired by a rank that does not own it";
	return NULL;
}

static const char *data_flaw(struct mmc_monitor *monitor,
			     struct mmc_monitor_op *seen,
			     const struct mmc_wire *wire)
{
	uint32_t chunk = wire->header.index & MMC_INDEX_MASK;
	const char *flaw;

	if (mmc_header_is_parity(wire->header.index))
		return mmc_wire_parity_flaw(wire, monitor, &seen->op->layout);
	if (chunk >= seen->op->layout.nchunks)
		return "no such chunk";
	flaw = wire->frame->traffic == MMC_TRAFFIC_MULTICAST
		       ? multicast_flaw(monitor, seen, wire, chunk)
		       : repair_flaw(monitor, seen, wire, chunk);
	if (!flaw && !payload_is_right(seen, wire, chunk))
		flaw = "sent with the wrong payload";
	return flaw;
}

/* Records the runs that a NAK asks for, or checks those that an NCF announces. */
static const char *runs_flaw(struct mmc_monitor_op *seen,
			     const struct mmc_message *message)
{
	for (uint32_t i = 0; i < message->nitems; i++) {
		struct mmc_run run = message->runs[i];

		if (run.first + run.count > seen->op->layout.nchunks)
			return "names chunks that do not exist";
		if (message->kind != MMC_MESSAGE_NCF)
			mmc_bitmap_set_run(&seen->asked, run);
		else if (mmc_bitmap_count_run(&seen->asked, run) != run.count)
			return "announces chunks that no rank asked for";
	}
	return NULL;
}

/* Checks that a rank that says it is done has all its bytes. */
static const char *done_flaw(struct mmc_monitor_op *seen, uint32_t rank)
{
	if (seen->done[rank])
		return NULL;
	seen->done[rank] = true;
	return seen->released[rank] ? NULL : mmc_sim_op_flaw(seen->op, rank);
}

/*
 * Counts a control datagram for its sender; of those that carry blocks together, the one
 * with the first part. Questions and answers are counted apart, as
 * excused, while some rank stalls or has not entered: for as long as that lasts, ranks
 * rightly go on asking it, and asking about it.
 */
static void count_control(struct mmc_monitor *monitor,
			  struct mmc_monitor_op *seen,
			  const struct mmc_wire *wire)
{
	const struct mmc_message *message = &wire->message;
	bool asks = message->stamp_us != 0 || message->echo_us != 0 ||
		    message->kind == MMC_MESSAGE_SENT ||
		    message->kind == MMC_MESSAGE_NAK ||
		    message->kind == MMC_MESSAGE_DIRECT_NAK;
	bool excused = seen->entered < monitor->nranks ||
		       monitor->network->now_ns <
			       monitor->stall_end_ns + MMC_BACKOFF_MAX_NS;

	/* A rank that answers before it has started the operation names no terms. */
	if (message->record.flags & MMC_RECORD_ENTERED) {
		seen->window_bytes = mmc_min_u32(
			seen->window_bytes, message->record.terms.window_bytes);
		seen->source_bytes = mmc_min_u32(
			seen->source_bytes, message->record.terms.source_bytes);
		mmc_terms_want(&seen->terms,
			       mmc_terms_wanted(&message->record.terms));
	}
	if (message->kind == MMC_MESSAGE_REPORT)
		seen->nchains = message->nitems;
	if (mmc_message_brings(message) && message->part.first != 0)
		return;
	if (asks && excused)
		seen->excused[wire->frame->source]++;
	else
		seen->control[wire->frame->source]++;
}

/* Checks a part of `count` blocks, those of the ranks from `owner` on. */
static const char *part_flaw(const struct mmc_sim_op *op, uint32_t owner,
			     uint32_t count, const struct mmc_message *message)
{
	uint64_t all_bytes = count * op->layout.block_bytes;
	uint64_t first = message->part.first;

	if (first >= all_bytes || message->nitems > all_bytes - first ||
	    message->nitems == 0)
		return "carries bytes beyond the blocks";
	for (uint32_t i = 0; i < message->nitems; i++)
		if (message->part.bytes[i] !=
		    op->truth[(owner * op->layout.block_bytes + first + i) %
			      op->layout.total_bytes])
			return "carries a wrong block";
	return NULL;
}

/*
 * Checks the blocks that a message carries: those of the ranks up to its sender, as many
 * as the round of the barrier has in which the sender tells that rank.
 */
static const char *blocks_flaw(struct mmc_monitor_op *seen,
			       const struct mmc_wire *wire)
{
	const struct mmc_layout *layout = &seen->op->layout;
	const struct mmc_message *message = &wire->message;
	uint32_t nranks = layout->nranks;
	uint32_t distance =
		(wire->frame->peer + nranks - wire->frame->source) % nranks;
	uint32_t count = mmc_min_u32(distance, nranks - distance);

	seen->carried = true;
	if (layout->sole) {
		if (wire->frame->source != layout->root)
			return "carries a block that is not its sender's";
		return part_flaw(seen->op, 0, 1, message);
	}
	if (wire->frame->peer >= nranks || distance == 0 ||
	    (distance & (distance - 1)) != 0)
		return "carries blocks to a rank that is no partner";
	return part_flaw(seen->op,
			 (wire->frame->source + nranks + 1 - count) % nranks,
			 count, message);
}

static const char *message_flaw(struct mmc_monitor *monitor,
				struct mmc_monitor_op *seen,
				const struct mmc_wire *wire)
{
	const struct mmc_message *message = &wire->message;
	const char *flaw = NULL;

	seen->unicast |= message->record.terms.deaf != 0;
	if (message->kind == MMC_MESSAGE_NAK ||
	    message->kind == MMC_MESSAGE_DIRECT_NAK ||
	    message->kind == MMC_MESSAGE_NCF)
		flaw = runs_flaw(seen, message);
	if (mmc_message_brings(message))
		flaw = blocks_flaw(seen, wire);
	if (!flaw && message->kind == MMC_MESSAGE_ADVERT &&
	    wire->frame->peer != (wire->frame->source + 1) % monitor->nranks)
		flaw = "goes to a rank other than the sender's right neighbour";
	if (!flaw && message->nitems > monitor->nranks &&
	    (message->kind == MMC_MESSAGE_REPORT ||
	     message->kind == MMC_MESSAGE_WATERMARK))
		flaw = "has more chains than ranks";
	if (!flaw && (message->record.flags & MMC_RECORD_DONE))
		flaw = done_flaw(seen, wire->frame->source);
	return flaw;
}

/* Counts a control datagram by kind. Returns whether it is the one to be lost. */
static bool count_and_choose(struct mmc_monitor *monitor,
			     const struct mmc_message *message)
{
	uint32_t kind = message->kind;
	uint64_t index;

	if (kind == MMC_MESSAGE_RECORD &&
	    (message->record.flags & MMC_RECORD_DONE))
		kind = MMC_CONTROL_DONE;
	index = monitor->control[kind]++;
	return kind == monitor->drop_kind && index == monitor->drop_index;
}

bool mmc_monitor_tap(void *context, const struct mmc_frame *frame)
{
	struct mmc_monitor *monitor = context;
	struct mmc_wire wire = { .frame = frame };
	struct mmc_monitor_op *seen;
	const char *flaw;

	mmc_traffic_add(&monitor->sent[frame->source], frame);
	if (monitor->blind)
		return true;
	flaw = mmc_wire_read(&wire, monitor);
	if (flaw) {
		violate(monitor, &wire, flaw);
		return true;
	}
	seen = &monitor->ops[wire.stream * monitor->nops + wire.index];
	if (wire.control)
		count_control(monitor, seen, &wire);
	flaw = wire.control ? message_flaw(monitor, seen, &wire)
			    : data_flaw(monitor, seen, &wire);
	if (flaw)
		violate(monitor, &wire, flaw);
	return !(wire.control && count_and_choose(monitor, &wire.message));
}

void mmc_monitor_check_all_sent(struct mmc_monitor *monitor)
{
	for (uint32_t i = 0;
	     !monitor->blind && i < monitor->nstreams * monitor->nops; i++) {
		const struct mmc_bitmap *sent = &monitor->ops[i].sent;
		struct mmc_run all = { .first = 0, .count = sent->nbits };

		if (monitor->nranks > 1 && !monitor->ops[i].unicast &&
		    !monitor->ops[i].carried &&
		    mmc_bitmap_count_run(sent, all) != sent->nbits)
			mmc_finding_add(monitor->finding,
					monitor->network->now_ns,
					"stream %u, operation %u: some chunks "
					"were never multicast",
					i / monitor->nops, i % monitor->nops);
	}
}
