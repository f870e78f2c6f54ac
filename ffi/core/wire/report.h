/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The body of a REPORT and of a WATERMARK: the position of each chain, behind the
 * number of chunks that the sender has multicast itself. They are sent several times a
 * window, so they are short: no record, and numbers of one byte each as long as chains
 * keep abreast:
 *
 *     positions | chunks sent | least position | each position less that one
 *
 * All are of variable length (core/wire/varint.h). A position beyond MMC_VARINT_MAX is
 * sent as MMC_VARINT_MAX, which is true as well: positions only grow.
 */
#ifndef MMC_CORE_WIRE_REPORT_H
#define MMC_CORE_WIRE_REPORT_H

#include "core/wire/message.h"

/* Returns the bytes that a REPORT or WATERMARK takes behind its header. */
size_t mmc_report_bytes(const struct mmc_message *message);

/* Writes `message`, mmc_report_bytes() long, to `bytes`. */
void mmc_report_encode(uint8_t *bytes, const struct mmc_message *message);

/*
 * Reads the `nbytes` that follow the header into `message`, except its kind. The record
 * says nothing but how much has been sent: no flag is set, and no term given. Returns
 * 0, -MMC_ESHORT if the length is not the one that the numbers ask for, or -MMC_EINVAL
 * if there are too many of them, one is out of its range, or they could be encoded in
 * fewer bytes; `message` is then undefined.
 */
int mmc_report_decode(struct mmc_message *message, const uint8_t *bytes,
		      size_t nbytes);

#endif
