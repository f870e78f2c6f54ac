/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C API, which the Python package uses: engines, teams, streams and requests. A
 * program need include no other header.
 *
 * An engine serves one process. A team is this process's membership in one set of
 * processes: an endpoint of a transport, and the addresses of the other ranks. A stream
 * is a sequence of operations that all ranks of a team start in the same order, such as
 * the collectives of one communicator. A request is one operation in flight.
 *
 * The library never calls MPI. The program sees to it that everything is equal on all
 * ranks that must be: channels, groups, ports, and all options but those that name a
 * rank or an address. Any thread may call, but calls on one request must not overlap.
 * In a child of fork() calls return -MMC_EFORKED and change nothing.
 *
 * Functions return 0 (MMC_OK), MMC_EAGAIN where their contract says so, or the negative
 * of an enum mmc_error. After a negative one mmc_last_error() tells more.
 */
#ifndef MPIMCAST_MMC_H
#define MPIMCAST_MMC_H

#include <mpimcast/code.h>
#include <mpimcast/counters.h>
#include <mpimcast/devices.h>
#include <mpimcast/engine.h>
#include <mpimcast/errors.h>
#include <mpimcast/partial.h>
#include <mpimcast/protect.h>
#include <mpimcast/proxy.h>
#include <mpimcast/request.h>
#include <mpimcast/stream.h>
#include <mpimcast/survey.h>
#include <mpimcast/team.h>
#include <stdint.h>

/* Returns the version of the protocol, which must be equal on all ranks. */
uint32_t mmc_wire_version(void);

/*
 * Returns a phrase that describes `error`, an enum mmc_error of either sign. It is
 * never NULL.
 */
const char *mmc_strerror(int error);

/* Returns details of the calling thread's last failed call; "" if there are none. */
const char *mmc_last_error(void);

#endif
