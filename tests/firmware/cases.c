/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs random cases of the simulator without an operating system, and prints the result of
 * each as a line.
 */
#include <mpimcast/sim.h>
#include <stdio.h>

#include "firmware/arena.h"
#include "firmware/machine.h"

/* The first seed and the number of cases, which QEMU loads before the start. */
extern const uint64_t mmc_parameters[2];

static char line[512];

/* Adler-32, RFC 1950, section 8. */
static uint32_t adler(const void *memory, size_t nbytes)
{
	const uint8_t *bytes = memory;
	uint32_t low = 1;
	uint32_t high = 0;

	for (size_t i = 0; i < nbytes; i++) {
		low = (low + bytes[i]) % 65521;
		high = (high + low) % 65521;
	}
	return high << 16 | low;
}

/* Returns 0, or 1 if the case could not be run. */
static unsigned run_case(uint64_t seed)
{
	struct mmc_sim_result result;
	struct mmc_sim_spec spec;
	int rv;

	mmc_sim_case(seed, &spec);
	rv = mmc_sim_run(&spec, &result);
	if (rv != 0) {
		snprintf(line, sizeof(line), "case %lu: %s, %s\n", seed,
			 mmc_strerror(rv), mmc_last_error());
		mmc_machine_print(line);
		return 1;
	}
	snprintf(line, sizeof(line),
		 "case %lu: %u ranks %u, %u links %u, figures %u, "
		 "%lu ns, %lu events, %lu datagrams, %lu sealed%s\n",
		 seed, result.nranks,
		 adler(result.ranks, result.nranks * sizeof(*result.ranks)),
		 result.nlinks,
		 adler(result.links, result.nlinks * sizeof(*result.links)),
		 adler(&result.figures, sizeof(result.figures)), result.time_ns,
		 result.events, result.datagrams, result.sealed,
		 result.violation);
	mmc_machine_print(line);
	mmc_sim_result_clear(&result);
	return 0;
}

int main(void)
{
	uint64_t first = mmc_parameters[0];
	uint64_t count = mmc_parameters[1];
	unsigned nfailed = 0;

	for (uint64_t seed = first; seed < first + count; seed++)
		nfailed += run_case(seed);
	snprintf(line, sizeof(line), "%lu bytes of memory\n",
		 mmc_arena_used_bytes());
	mmc_machine_print(line);
	return nfailed > 0;
}
