/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The body of a REPORT and of a WATERMARK: how many chunks the sender itself has
 * multicast, and the position of each chain. These messages are sent several times a
 * window, so they are short. They have no record, and as long as chains keep abreast,
 * most of their numbers take one byte each:
 *
 *     number of positions | chunks sent | least position | each position less the least
 *
 * All numbers are of variable length (core/wire/varint.h). A position beyond
 * MMC_VARINT_MAX is sent as MMC_VARINT_MAX: a report may say less than is true.
 */
#ifndef MMC_CORE_WIRE_REPORT_H
#define MMC_CORE_WIRE_REPORT_H

#include "core/wire/message.h"

/* Returns the bytes that a REPORT or WATERMARK takes behind its header. */
size_t mmc_report_bytes(const struct mmc_message *message);

/* Writes `message`, mmc_report_bytes() long, to `bytes`. */
void mmc_report_encode(uint8_t *bytes, const struct mmc_message *message);

/*
 * Reads the `nbytes` that follow the header into `message`, except its kind. Its record
 * says only how much has been sent: no flag is set, and the terms are empty. Returns 0,
 * -MMC_ESHORT if the length does not agree with the numbers, or -MMC_EINVAL if there
 * are too many numbers, one is out of its range, or they could be encoded in fewer
 * bytes; after an error `message` is undefined.
 */
int mmc_report_decode(struct mmc_message *message, const uint8_t *bytes,
		      size_t nbytes);

#endif
