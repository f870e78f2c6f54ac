/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every outcome that a call of the library can have. Functions return 0 or a
 * positive result on success and the negative of one of these on failure.
 */
#ifndef MPIMCAST_ERRORS_H
#define MPIMCAST_ERRORS_H

enum mmc_error {
	MMC_OK = 0,
	MMC_EAGAIN = 1, /* not over yet: call again */
	MMC_EINVAL = 2, /* an argument is outside its contract */
	MMC_ENOMEM = 3,
	MMC_EIO = 4,	/* a system call failed; mmc_last_error() says which */
	MMC_ENODEV = 5, /* no usable device */
	MMC_ESHORT = 6, /* a datagram ends before its fields do */
	MMC_ECORRUPT = 7, /* a checksum does not match */
	MMC_EFORKED = 8,  /* the caller is a child of the process that opened */
	MMC_ENOANSWER = 9, /* a peer's process gave no answer within TIMEOUT */
	MMC_ENOPROGRESS =
		10, /* all had entered, then nothing new within TIMEOUT */
	MMC_ENOENTRY = 11,  /* a rank did not enter within ENTRY_TIMEOUT */
	MMC_EMISMATCH = 12, /* ranks started different operations */
	MMC_ECANCELED = 13, /* a rank was interrupted in the operation */
	MMC_EPOISONED =
		14, /* an earlier operation of the communicator failed */
	MMC_EADDRINUSE = 15, /* another program has the groups' port */
	MMC_ELEFT = 16,	     /* a rank has left and will never enter */
	MMC_EGONE = 17,	     /* the process of a rank has ended */
	MMC_ELATE = 18, /* it exists, but gave no answer for LATE_TIMEOUT */
};

#endif
