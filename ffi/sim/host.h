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
	uint64_t *start_ns;	       /* [nops] */
	uint32_t nstarted;
	uint32_t nover;
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
	uint64_t sending_ns;  /* end of its wait for room on its link */
	uint64_t stall_begin_ns;
	bool dead;
	struct mmc_sim_rank outcome;
};

/*
 * Opens the host's engine, buffers and team. Returns 0 or a negative error;
 * mmc_host_close() is to be called in any case.
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
 * Runs the engine when its timer fires. Returns whether it ran; if so writes when it
 * wants to run next. The program then looks at the outcome, and mmc_host_sleep() sets
 * the timer.
 */
bool mmc_host_step(struct mmc_host *host, uint64_t *next_ns);
void mmc_host_sleep(struct mmc_host *host, uint64_t next_ns);

/* Handle the events of a host: arrival, placement, read, answer to an inquiry. */
void mmc_host_arrive(struct mmc_host *host, struct mmc_frame *frame);
void mmc_host_place(struct mmc_host *host);
void mmc_host_read(struct mmc_host *host);
void mmc_host_inquiry(struct mmc_host *host);

/* Ends the host's process; from then on `kernel` says how inquiries are answered. */
void mmc_host_die(struct mmc_host *host, enum mmc_sim_kernel kernel);

/* Sums up the counters of its streams in `outcome`. */
void mmc_host_count(struct mmc_host *host);

#endif
