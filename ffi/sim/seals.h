/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for a library of cryptography: it notices changes, as a checksum does, hides
 * nothing, and remembers each nonce that was used with each key. A run is deterministic,
 * and the monitor can read what is sent. Nobody but the simulator may use it.
 */
#ifndef MMC_SIM_SEALS_H
#define MMC_SIM_SEALS_H

#include "drivers/protect/primitive.h"

/* All seals of a run, in a hash table. It begins as all zeros. */
struct mmc_seals {
	struct mmc_seal_used *used;
	uint64_t capacity; /* a power of two, or 0 */
	uint64_t count;
	bool repeated; /* a nonce was used a second time with its key */
	bool out_of_memory;
};

/* The stand-in; its ciphers belong to the seals that mmc_seals_enter() has named. */
extern const struct mmc_primitive mmc_sim_primitive;

/* Names the seals to which the calling thread's ciphers belong from now on. */
void mmc_seals_enter(struct mmc_seals *seals);

void mmc_seals_free(struct mmc_seals *seals);

#endif
