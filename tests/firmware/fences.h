/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that the firmware fences.c shares with the host's program peer/fences.c. In each
 * round each side shows a word and then looks at the other side's word, as the two sides of
 * a ring do before one of them sleeps. At least one side must see the other's new word.
 */
#ifndef MMC_TESTS_FENCES_H
#define MMC_TESTS_FENCES_H

#include <stdint.h>

/* Each word has a cache line of its own, and holds the number of a round, from 1 on. */
struct fences {
	_Alignas(64) uint32_t began; /* by the host, which is ready to show */
	_Alignas(64) uint32_t host;  /* shown by the host */
	_Alignas(64) uint32_t firmware; /* shown by the firmware */
	_Alignas(64) uint32_t seen;  /* of the host's word, by the firmware */
	_Alignas(64) uint32_t ended; /* by the firmware */
};

#endif
