/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The monitor sees every datagram as a rank sends it, and checks that the protocol
 * allows that datagram. It also counts what each rank sends, and can make the network
 * lose one chosen control datagram.
 */
#ifndef MMC_SIM_MONITOR_H
#define MMC_SIM_MONITOR_H

#include "core/plan/bitmap.h"
#include "core/wire/message.h"
#include "drivers/sim/network.h"
#include "sim/finding.h"
#include "sim/op.h"

/*
 * The kinds of control datagrams that can be lost on purpose: the kinds of messages,
 * and one for records of ranks that are done.
 */
#define MMC_CONTROL_DONE MMC_MESSAGE_COUNT
#define MMC_CONTROL_COUNT (MMC_MESSAGE_COUNT + 1)

/* The monitor's observations of one operation. */
struct mmc_monitor_op {
	const struct mmc_sim_op *op;
	struct mmc_bitmap sent;	 /* chunks multicast for the first time */
	struct mmc_bitmap asked; /* chunks that a rank asked for */
	uint32_t entered;	 /* number of ranks that have started it */
	bool unicast;		 /* a rank has asked to do without multicast */
	bool carried;		 /* messages have carried its blocks */
	bool *done;	/* per rank: it says it is done, and was checked */
	bool *released; /* per rank: the user has its buffers back */
	uint32_t window_bytes;	/* the least window_bytes named by a rank */
	uint32_t source_bytes;	/* the least source_bytes named by a rank */
	struct mmc_terms terms; /* with the merged term `parity` alone */
	uint32_t nchains;	/* chains, as in the reports */
	uint32_t *control;	/* per rank: control datagrams not excused */
	uint32_t *excused;	/* per rank: control about stalled ranks */
};

struct mmc_monitor {
	struct mmc_finding *finding;
	const struct mmc_network *network;
	uint32_t nranks;
	uint32_t nops; /* operations of each stream */
	uint32_t nstreams;
	uint32_t subgroups;
	uint32_t chains;
	bool by_chain; /* each chain goes to one subgroup */
	uint32_t repair;
	uint32_t code_data;
	uint32_t code_parity;
	uint32_t eager_bytes;
	bool blind; /* traffic is only counted */
	enum mmc_checksum checksum;
	uint32_t seal_bytes;		/* by which each datagram is longer */
	const uint64_t *channels;	/* of the streams */
	struct mmc_monitor_op *ops;	/* [nstreams][nops] */
	struct mmc_traffic_count *sent; /* what each rank has sent */
	uint64_t control[MMC_CONTROL_COUNT]; /* datagrams seen of each kind */
	uint64_t stall_end_ns; /* end of the last stall of any rank */
	uint32_t drop_kind;    /* the kind of the datagram to lose */
	uint64_t drop_index;   /* its number within that kind */
};

/*
 * Allocates the monitor's memory; the fields up to `channels` are set already.
 * Operation `i` is `all[i]`, nstreams * nops of them, stream by stream; they and all
 * that the fields point to must outlive the monitor. Returns 0 or -MMC_ENOMEM.
 */
int mmc_monitor_init(struct mmc_monitor *monitor, const struct mmc_sim_op *all);

void mmc_monitor_free(struct mmc_monitor *monitor);

/*
 * Record that a rank starts operation `op`, an index of `ops`, or that `rank` has its
 * buffers back.
 */
void mmc_monitor_on_start(struct mmc_monitor *monitor, uint32_t op);
void mmc_monitor_on_release(struct mmc_monitor *monitor, uint32_t op,
			    uint32_t rank);

/* Records that some rank does nothing until `end_ns`. */
void mmc_monitor_on_stall(struct mmc_monitor *monitor, uint64_t end_ns);

/*
 * Checks and counts a datagram that is being sent. Returns false if the network is to
 * lose it. The network calls this for every datagram; `context` is the monitor.
 */
bool mmc_monitor_tap(void *context, const struct mmc_frame *frame);

/*
 * Checks, after a run in which every rank succeeded, that each rank has multicast each
 * of its chunks.
 */
void mmc_monitor_check_all_sent(struct mmc_monitor *monitor);

#endif
