/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fences IMAGE` runs the firmware in the file IMAGE, which was built from
 * firmware/fences.c, shares memory with it, and prints in how many rounds neither side has
 * seen the word that the other side has shown.
 */
#include "firmware/fences.h"

#include <mpimcast/mmc.h>
#include <stdio.h>

#include "firmware/adapter/machine.h"
#include "offload/ring.h"

#define NROUNDS 200000

/* The host waits until the firmware has noticed that a round has begun: up to so many turns. */
#define SPINS_MAX 512

/* Runs a round. Returns whether neither side has seen the other's new word. */
static bool both_miss(struct fences *fences, uint32_t round)
{
	uint32_t seen;

	mmc_ring_show(&fences->began, round);
	for (volatile uint32_t spins = 0; spins < round % SPINS_MAX; spins++)
		;
	mmc_ring_show(&fences->host, round);
	seen = mmc_ring_see(&fences->firmware);
	while (mmc_ring_see(&fences->ended) != round)
		;
	return seen != round && fences->seen != round;
}

int main(int argc, char **argv)
{
	struct machine machine;
	uint32_t nmissed = 0;

	if (argc != 2 || machine_create(&machine) != 0)
		return 2;
	if (machine_start(&machine, argv[1], 1) != 0) {
		fprintf(stderr, "%s\n", mmc_last_error());
		machine_destroy(&machine);
		return 2;
	}
	for (uint32_t round = 1; round <= NROUNDS; round++)
		nmissed += both_miss((struct fences *)machine.nic, round);
	printf("%u rounds missed\n", nmissed);
	machine_destroy(&machine);
	return 0;
}
