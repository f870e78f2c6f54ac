/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The outcomes of the library's calls. A function that fails returns the negative of
 * one of these codes; one that succeeds returns 0, or MMC_EAGAIN where its contract
 * says so.
 */
#ifndef MPIMCAST_ERRORS_H
#define MPIMCAST_ERRORS_H

enum mmc_error {
	MMC_OK = 0,
	MMC_EAGAIN = 1, /* not complete yet: call again */
	MMC_EINVAL = 2, /* an argument violates the call's contract */
	MMC_ENOMEM = 3, /* no memory is left */
	MMC_EIO = 4,	/* a system call failed; mmc_last_error() says which */
	MMC_ENODEV = 5, /* no usable device */
	MMC_ESHORT = 6, /* a datagram ends before its last field */
	MMC_ECORRUPT = 7,  /* a checksum does not match */
	MMC_EFORKED = 8,   /* called in a child after fork() */
	MMC_ENOANSWER = 9, /* a peer's process did not answer within TIMEOUT */
	MMC_ENOPROGRESS = 10, /* all entered, but no data came for TIMEOUT */
	MMC_ENOENTRY = 11,    /* a rank did not enter within ENTRY_TIMEOUT */
	MMC_EMISMATCH = 12,   /* ranks started different operations */
	MMC_ECANCELED = 13,   /* a rank was interrupted during the operation */
	MMC_EPOISONED = 14,   /* an earlier operation of the stream failed */
	/* Another program uses the UDP port of the groups. */
	MMC_EADDRINUSE = 15,
	MMC_ELEFT = 16, /* a rank has left and will never enter */
	MMC_EGONE = 17, /* a rank's process has ended */
	MMC_ELATE = 18, /* a process exists, but was silent for LATE_TIMEOUT */
};

#endif
