/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeps again and again while the host rings bells, and fails if a sleep does not end
 * although more bells wait.
 */
#include "firmware/machine.h"

/* The number of sleeps, which QEMU loads before the start. */
extern const uint64_t mmc_parameters[1];

/* The host rings all the time, so even on a busy machine a sleep ends sooner. */
#define LIMIT_NS UINT64_C(20000000000)

int main(void)
{
	mmc_machine_listen();
	for (uint64_t i = 0; i < mmc_parameters[0]; i++) {
		uint64_t began_ns = mmc_machine_now_ns();

		mmc_machine_doze(LIMIT_NS);
		if (mmc_machine_now_ns() - began_ns >= LIMIT_NS) {
			mmc_machine_print("a bell was missed\n");
			return 1;
		}
	}
	mmc_machine_print("passed\n");
	return 0;
}
