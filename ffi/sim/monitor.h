/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A monitor on the wire: sees every datagram as it is sent and knows what the
 * protocol allows. It also counts what each rank sends, and can make the
 * network lose one control datagram.
 */
#ifndef MMC_SIM_MONITOR_H
#define MMC_SIM_MONITOR_H

#include "core/plan/bitmap.h"
#include "core/wire/message.h"
#include "drivers/sim/network.h"
#include "sim/finding.h"
#include "sim/op.h"

/*
 * Kinds of control datagrams that can be lost on purpose: those of messages,
 * and apart from them records of ranks that are done.
 */
#define MMC_CONTROL_DONE MMC_MESSAGE_COUNT
#define MMC_CONTROL_COUNT (MMC_MESSAGE_COUNT + 1)

/* What has been seen of one operation. */
struct mmc_monitor_op {
	const struct mmc_sim_op *op;
	struct mmc_bitmap sent;	 /* chunks multicast for the first time */
	struct mmc_bitmap asked; /* chunks that somebody lacked */
	uint32_t entered;	 /* ranks that have started it */
	bool unicast;		 /* a rank asked for that */
	bool *done;		 /* per rank: seen, and verified, as done */
	bool *over;		 /* per rank: its buffers are its own again */
	uint32_t window_bytes;	 /* the least that a rank has named */
	uint32_t source_bytes;	 /* likewise, of a single sender */
	uint32_t nchains;	 /* as reports have them */
	uint32_t
		*control; /* per rank: datagrams sent, but for `excused` ones */
	uint32_t *excused; /* likewise: questions about ranks that stand still,
			    * and answers to them */
};

struct mmc_monitor {
	struct mmc_finding *finding;
	const struct mmc_network *network;
	uint32_t nranks;
	uint32_t nops; /* of each stream */
	uint32_t nstreams;
	uint32_t subgroups;
	uint32_t chains;
	bool by_chain; /* a chain goes to one subgroup */
	uint32_t repair;
	uint32_t eager_bytes;
	bool blind; /* counts only */
	enum mmc_checksum checksum;
	const uint64_t *channels;	     /* of the streams */
	struct mmc_monitor_op *ops;	     /* [nstreams][nops] */
	struct mmc_traffic_count *sent;	     /* per rank */
	uint64_t control[MMC_CONTROL_COUNT]; /* datagrams seen of each kind */
	uint64_t still_ns;  /* until when some rank stands still */
	uint32_t drop_kind; /* lose number `drop_index` of this kind */
	uint64_t drop_index;
};

/*
 * Gives the monitor its memory; the fields up to `channels` are set already.
 * Operation `i` is `all[i]`, nstreams * nops of them, stream by stream; they
 * and all that the fields point to must outlive it. Returns 0 or -MMC_ENOMEM.
 */
int mmc_monitor_init(struct mmc_monitor *monitor, const struct mmc_sim_op *all);

void mmc_monitor_free(struct mmc_monitor *monitor);

/* A rank starts an operation, or has its buffers back. */
void mmc_monitor_enter(struct mmc_monitor *monitor, uint32_t op);
void mmc_monitor_leave(struct mmc_monitor *monitor, uint32_t op, uint32_t rank);

/* Some rank stands still until `end_ns`, or for good. */
void mmc_monitor_stall(struct mmc_monitor *monitor, uint64_t end_ns);

/* The network's tap; `context` is the monitor. */
bool mmc_monitor_tap(void *context, const struct mmc_frame *frame);

/*
 * For a run in which every rank succeeded: each rank must have multicast each
 * of its chunks.
 */
void mmc_monitor_finish(struct mmc_monitor *monitor);

#endif
