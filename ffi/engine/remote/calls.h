/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to the runner of a team: what the API's functions of like names do where this
 * process's engine does not carry out the team's operations. Each waits for the runner's
 * answer, which comes at once unless it says otherwise. After a failure that leaves
 * nothing to answer, the answer is all zeros.
 *
 * The caller of each function holds the progress lock.
 */
#ifndef MMC_ENGINE_REMOTE_CALLS_H
#define MMC_ENGINE_REMOTE_CALLS_H

#include <mpimcast/abi/offload.h>

#include "engine/state.h"

int mmc_remote_protect(struct mmc_team *team, struct mmc_secret *secret);

/* Waits for the team's ranks for at most `slice_ns`. */
int mmc_remote_probe(struct mmc_team *team, uint64_t slice_ns,
		     struct mmc_probe *probe);

int mmc_remote_survey_begin(struct mmc_team *team, uint32_t id,
			    uint32_t nnumbers);
int mmc_remote_survey_send(struct mmc_team *team,
			   const struct mmc_burst *burst);

/* Waits for `slice_ns`. */
int mmc_remote_survey_listen(struct mmc_team *team, uint64_t slice_ns,
			     struct mmc_hearing *heard);

/* Adds the runner's counters of a team to `values`. */
void mmc_remote_team_counters(struct mmc_team *team, uint64_t *values);

uint32_t mmc_remote_strangers(struct mmc_team *team,
			      struct mmc_stranger *strangers);

int mmc_remote_stream_create(struct mmc_stream *stream);
void mmc_remote_stream_leave(struct mmc_stream *stream);
void mmc_remote_stream_fail(struct mmc_stream *stream, int error);
void mmc_remote_stream_close(struct mmc_stream *stream);
void mmc_remote_stream_failure(struct mmc_stream *stream,
			       struct mmc_failure *failure);
void mmc_remote_stream_reason(struct mmc_stream *stream,
			      struct mmc_unicast_reason *reason);

/* Adds the runner's counters of a stream to `values`. */
void mmc_remote_stream_counters(struct mmc_stream *stream, uint64_t *values);

#endif
