/* SPDX-License-Identifier: BSD-3-Clause */
/* One simulated rank: its engine on its endpoint, and when that engine runs. */
#ifndef MMC_SIM_HOST_H
#define MMC_SIM_HOST_H

#include "drivers/sim/endpoint.h"
#include "engine/engine.h"
#include "sim/stage.h"

struct mmc_host_stream {
	struct mmc_stream *stream;
	struct mmc_request **requests; /* [nops], NULL unless in flight */
	uint64_t *start_ns;	       /* [nops] when each was started */
	uint32_t nstarted;	       /* operations that were started */
	uint32_t nended;	       /* operations that have ended */
	uint64_t nmulticast;	       /* datagrams, as of the last look */
	struct mmc_trace_event turn;   /* of a traced run; `count` 0: none */
};

struct mmc_host {
	struct mmc_stage *stage;
	uint32_t rank;
	struct mmc_engine *engine;
	struct mmc_sim_endpoint *endpoint; /* the team's, once that is open */
	struct mmc_team *team;
	void *memory; /* all buffers; engine memory with zero-copy */
	struct mmc_host_stream *streams;
	struct mmc_prng prng; /* for the choices of its program */
	uint64_t wake_ns;     /* when its engine runs next */
	uint64_t sending_ns;  /* until then it waits for room on its link */
	uint64_t
		receiving_ns; /* until then its engine handles what it polled */
	uint64_t stall_begin_ns; /* its first stall; MMC_NEVER_NS: none */
	bool dead; /* its process has ended, or its machine is off */
	struct mmc_sim_rank outcome;
};

/*
 * Opens the host's engine, buffers and team. Returns 0 or a negative error;
 * mmc_host_close() must be called in either case.
 */
int mmc_host_open(struct mmc_host *host, struct mmc_stage *stage,
		  uint32_t rank);

/* Connects to all ranks and opens the streams. Returns 0 or a negative error. */
int mmc_host_connect(struct mmc_host *host, const uint8_t *addresses);

/* Frees a host; operations in flight are given up. */
void mmc_host_close(struct mmc_host *host);

/* Returns `time_ns`, or the end of the stall that it falls into. */
uint64_t mmc_host_after_stall(const struct mmc_host *host, uint64_t time_ns);

/* Has the engine run at `time_ns`, or as soon after that as it can. */
void mmc_host_wake_at(struct mmc_host *host, uint64_t time_ns);

/*
 * Runs the engine, when its timer fires. Returns whether it ran: a timer that has been
 * superseded by an earlier one does nothing. If it ran, writes when the engine wants to
 * run next, for mmc_host_sleep().
 */
bool mmc_host_step(struct mmc_host *host, uint64_t *next_ns);

/*
 * Sets the timer of the engine's next run, which is at `next_ns` unless something has
 * arrived already or the link has no room.
 */
void mmc_host_sleep(struct mmc_host *host, uint64_t next_ns);

/*
 * Handle the events of a host: a datagram has arrived, which the host frees; a
 * placement, a read, or the answer to an inquiry is due.
 */
void mmc_host_on_arrival(struct mmc_host *host, struct mmc_frame *frame);
void mmc_host_on_place_due(struct mmc_host *host);
void mmc_host_on_read_due(struct mmc_host *host);
void mmc_host_on_inquiry_due(struct mmc_host *host);

/*
 * Ends the host's process. From then on `kernel` says how its machine answers
 * inquiries: with a refusal, or not at all if the machine is off.
 */
void mmc_host_die(struct mmc_host *host, enum mmc_sim_kernel kernel);

/* Adds the counters of its streams and of its team to `outcome`. */
void mmc_host_sum_counters(struct mmc_host *host);

#endif
