/* SPDX-License-Identifier: BSD-3-Clause */
/* An emulated adapter's processor and memory: a process of QEMU, and a file that it maps. */
#ifndef MMC_TESTS_ADAPTER_MACHINE_H
#define MMC_TESTS_ADAPTER_MACHINE_H

#include <mpimcast/abi/nic.h>
#include <stdbool.h>
#include <sys/types.h>

/* The memory of the firmware's own program, as it was linked for; the ABI lies behind. */
#define MACHINE_PROGRAM_BYTES (UINT64_C(512) << 20)
#define MACHINE_BYTES (UINT64_C(768) << 20)

struct machine {
	int memory_fd;
	uint8_t *memory; /* MACHINE_BYTES */
	struct mmc_nic *nic;
	pid_t pid;   /* of QEMU; 0: it does not run */
	int bell_fd; /* a byte written here interrupts the processor */
	int words_fd; /* what the processor writes: bells, and text when it ends */
};

/* Creates the memory. Returns 0, or -MMC_EIO with the reason in mmc_last_error(). */
int machine_create(struct machine *machine);

/* Starts `nharts` harts on the program in the file `image`. Returns 0 or -MMC_EIO. */
int machine_start(struct machine *machine, const char *image, uint32_t nharts);

/* Interrupts the processor's sleep. */
void machine_ring(const struct machine *machine);

/*
 * Takes what the processor has written, and passes text on to standard error. Returns false
 * once the processor has ended.
 */
bool machine_listen(const struct machine *machine);

/* Ends the processor, and unmaps the memory. */
void machine_destroy(struct machine *machine);

#endif
