/* SPDX-License-Identifier: BSD-3-Clause */
/* What computes erasure codes. */
#ifndef MPIMCAST_CODE_H
#define MPIMCAST_CODE_H

/*
 * Opens ISA-L (libisal.so.2), and compares what it computes with what our own tables give; a library
 * that was opened stays open. Returns 0, or -MMC_ENODEV with the reason set: then erasure
 * codes are computed by the tables, more slowly. Any thread may call this.
 */
int mmc_code_library_open(void);

#endif
