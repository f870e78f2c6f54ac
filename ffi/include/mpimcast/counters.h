/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of streams and teams, as stats() shows them. */
#ifndef MPIMCAST_COUNTERS_H
#define MPIMCAST_COUNTERS_H

#include <stdint.h>

struct mmc_team;
struct mmc_stream;

/* Returns how many counters a stream has; a team has as many. */
uint32_t mmc_counter_count(void);

/* Returns the name of counter `index`, which is below mmc_counter_count(). */
const char *mmc_counter_name(uint32_t index);

/* Copies the counters of a stream to `values`, mmc_counter_count() long. */
void mmc_stream_counters(struct mmc_stream *stream, uint64_t *values);

/*
 * Copies the counters of what a team has sent and received outside any stream to
 * `values`, mmc_counter_count() long.
 */
void mmc_team_counters(struct mmc_team *team, uint64_t *values);

#endif
