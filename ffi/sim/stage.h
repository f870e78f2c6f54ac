/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stage of a run is what all ranks share: the network, the operations, and the
 * monitor.
 */
#ifndef MMC_SIM_STAGE_H
#define MMC_SIM_STAGE_H

#include "drivers/sim/inquiries.h"
#include "drivers/sim/regions.h"
#include "sim/monitor.h"
#include "sim/seals.h"

#define MMC_SIM_STREAMS_MAX 64

/* The timers of a run, and what the target of each is. */
enum {
	MMC_TIMER_WAKE = MMC_NETWORK_TIMER, /* target: rank */
	MMC_TIMER_START,   /* target: rank * nstreams + stream */
	MMC_TIMER_PLACE,   /* target: rank */
	MMC_TIMER_READ,	   /* target: the reading rank */
	MMC_TIMER_DEATH,   /* target: rank */
	MMC_TIMER_CANCEL,  /* target: rank */
	MMC_TIMER_END,	   /* target: rank */
	MMC_TIMER_INQUIRY, /* target: the asking rank */
	MMC_TIMER_READY,   /* target: a message of the script */
	MMC_TIMER_SEND,	   /* target: a node that sends the script's messages */
};

/* The input of a run, which is only read and outlives the run. */
struct mmc_scene {
	const struct mmc_sim_spec *spec;
	const struct mmc_fabric *fabric; /* NULL: as the spec says */
	const struct mmc_script *script; /* NULL: none */
	struct mmc_trace *trace;	 /* of all ranks; NULL: none */
};

struct mmc_stage {
	const struct mmc_sim_spec *spec;
	struct mmc_trace *trace; /* NULL: none */
	uint32_t scale;		 /* bytes that a byte of payload stands for */
	struct mmc_network network;
	struct mmc_sim_regions regions;
	enum mmc_sim_kernel *kernels; /* [nranks] */
	struct mmc_monitor monitor;
	struct mmc_finding finding;
	struct mmc_seals seals;
	uint64_t channels[MMC_SIM_STREAMS_MAX];
	struct mmc_sim_op *ops; /* [nstreams][nops] */
	uint32_t nrunning;	/* operations yet to end, on ranks that live */
};

/*
 * Opens the stage of `scene`. Returns 0, -MMC_EINVAL if it cannot be run, or -MMC_ENOMEM;
 * mmc_stage_close() must be called in either case.
 */
int mmc_stage_open(struct mmc_stage *stage, const struct mmc_scene *scene);

/* Returns by how much protection makes each datagram of a run longer. */
static inline uint32_t mmc_stage_seal_bytes(const struct mmc_sim_spec *spec)
{
	return spec->protect != MMC_PROTECT_OFF ? MMC_SEAL_BYTES : 0;
}

/* Returns the checksum of a run's datagrams: a seal takes the place of a CRC. */
static inline enum mmc_checksum
mmc_stage_checksum(const struct mmc_sim_spec *spec)
{
	return spec->protect != MMC_PROTECT_OFF &&
			       spec->checksum == MMC_CHECKSUM_FULL
		       ? MMC_CHECKSUM_HEADER
		       : (enum mmc_checksum)spec->checksum;
}

void mmc_stage_close(struct mmc_stage *stage);

/*
 * Returns what is wrong with the error that an operation ended with, or with the
 * `failure` that explains it; NULL if it is 0 or its cause has happened in this run.
 */
const char *mmc_stage_failure_flaw(const struct mmc_stage *stage, int error,
				   const struct mmc_failure *failure);

#endif
