/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps files to memory of this process. */
#ifndef MMC_ENGINE_MAPPING_H
#define MMC_ENGINE_MAPPING_H

#include <stddef.h>

/*
 * Maps the first `nbytes` of the file `fd`, shared with other processes. Returns their
 * address, or NULL with the reason in mmc_last_error().
 */
void *mmc_mapping_make(int fd, size_t nbytes);

/* Returns another descriptor of the file `fd`, or -1 if there can be no more. */
int mmc_mapping_keep(int fd);

/*
 * Ends a mapping of `nbytes`, which may be rounded up to whole pages, and closes `fd`
 * unless it is -1.
 */
void mmc_mapping_end(void *bytes, size_t nbytes, int fd);

#endif
