/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state that ranks.h works on: all ranks, and the network between them, which
 * delays, reorders, repeats and loses datagrams.
 */
#ifndef MMC_TESTS_NETWORK_H
#define MMC_TESTS_NETWORK_H

#include "check.h"
#include "core/operation/epochs.h"
#include "events.h"
#include "support/prng.h"

#define RANKS_MAX 20
#define RANKS_EPOCHS_MAX 16
#define RANKS_GIVEN_BACK UINT32_MAX /* fills all places after DONE or FAILED */
#define RANKS_STEPS_MAX 1000000

struct ranks_shape {
	uint32_t nranks;
	uint32_t nepochs;
	uint32_t nactive;     /* how many epochs a rank may run at a time */
	uint64_t block_bytes; /* of each block; if uneven, the greatest */
	bool uneven;	      /* block sizes are drawn, and some are 0 */
	bool sole;	      /* only the root has a block */
	uint32_t root;
	uint32_t chunk_bytes;
	uint32_t nchains;
	uint32_t window_bytes;
	uint64_t eager_bytes;
	uint64_t retain_bytes;
	enum mmc_repair repair;
	uint32_t read_bytes; /* the most that one read brings; 0: no reads */
	bool unregistrable;  /* memory cannot be registered */
	uint64_t entry_timeout_ns;
	uint64_t late_ns; /* start delay; if all are late, the greatest */
	uint32_t late;	  /* the late rank; MMC_PEER_ALL: all are */
	uint32_t tardy;	  /* another rank, which is late by tardy_ns */
	uint64_t tardy_ns;
	uint64_t delay_ns; /* least delay of a datagram, at most doubled */
	uint64_t loss;	   /* chance to lose a datagram, out of 2^32 */
	uint64_t twice;	   /* chance to arrive twice, out of 2^32 */
	uint64_t seed;
	uint32_t odd;  /* rank that calls another operation, or MMC_PEER_NONE */
	uint32_t dead; /* rank that does not answer, or MMC_PEER_NONE */
	/*
	 * The transport can be asked whether a rank exists. Of the dead rank it
	 * says that it is gone if `ended`, else nothing.
	 */
	bool inquires;
	bool ended;
	/* This rank stands still for a time, while its kernel answers. */
	uint32_t stopped;
	uint64_t stop_begin_ns;
	uint64_t stop_end_ns; /* 0: no rank stands still */
	uint64_t late_timeout_ns;
	bool unattended;
};

struct ranks_epoch {
	void *memory;
	uint32_t *places;
	enum mmc_op_state state; /* as last seen */
	bool started;
	bool over;
	bool retained;
	bool failed;
	bool forgotten;
	uint32_t nplacing;
	uint32_t nsending;
	uint32_t nreads;
};

struct ranks_rank {
	struct mmc_epochs epochs;
	_Alignas(16) uint8_t epochs_memory[RANKS_MAX * 32];
	struct mmc_counters counters;
	struct ranks_epoch epoch[RANKS_EPOCHS_MAX + 1];
	uint64_t deadline_ns;
	bool ready; /* its next epoch may start */
};

struct ranks {
	struct ranks_shape shape;
	struct mmc_layout layout;
	uint64_t blocks_bytes[RANKS_MAX]; /* used if uneven */
	_Alignas(16) uint8_t table[RANKS_MAX * 64];
	struct mmc_prng prng;
	struct ranks_rank rank[RANKS_MAX];
	struct mmc_heap events; /* of struct event */
	uint64_t now_ns;
	uint32_t nsteps;
};

/* Returns when an event of `at_ns` reaches rank `r`: a stopped rank gets it later. */
static inline uint64_t ranks_when(const struct ranks *net, uint32_t r,
				  uint64_t at_ns)
{
	const struct ranks_shape *shape = &net->shape;

	if (r == shape->stopped && at_ns >= shape->stop_begin_ns &&
	    at_ns < shape->stop_end_ns)
		return shape->stop_end_ns;
	return at_ns;
}

static inline uint64_t ranks_some(struct ranks *net, uint64_t time_ns)
{
	return net->now_ns + time_ns + mmc_prng_below(&net->prng, time_ns + 1);
}

/* Carries a datagram to `target`, later, and perhaps twice or not at all. */
static inline void ranks_carry(struct ranks *net, struct event event,
			       uint32_t target)
{
	unsigned copies = mmc_prng_chance(&net->prng, net->shape.twice) ? 2 : 1;

	if (mmc_prng_chance(&net->prng, net->shape.loss))
		return;
	event.rank = target;
	while (copies-- > 0) {
		struct event copy = event;

		copy.at_ns = ranks_some(net, net->shape.delay_ns);
		if (event.control != NULL) {
			copy.control = malloc(event.control_bytes);
			memcpy(copy.control, event.control,
			       event.control_bytes);
		}
		events_push(&net->events, &copy);
	}
}

static inline void ranks_send(struct ranks *net, const struct event *event,
			      uint32_t peer)
{
	for (uint32_t r = 0; r < net->shape.nranks; r++)
		if (r != event->source && (peer == MMC_PEER_ALL || peer == r))
			ranks_carry(net, *event, r);
}

#endif
