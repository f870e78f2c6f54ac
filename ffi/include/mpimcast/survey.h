/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ways to find out how well the ranks of a team hear each other: a probe tells
 * whether multicast arrives at all, a survey how much of it and how fast.
 */
#ifndef MPIMCAST_SURVEY_H
#define MPIMCAST_SURVEY_H

#include <stdint.h>

struct mmc_team;

/* What a probe has found so far. */
struct mmc_probe {
	/* Ranks of which no probe of any size has arrived in some subgroup. */
	uint32_t unheard;
	/* Ranks of which no full-size probe has arrived in some subgroup. */
	uint32_t unheard_full;
	uint32_t rank; /* the first of `unheard_full`; UINT32_MAX: none */
};

/*
 * Multicasts short and full-size probes to every subgroup, and listens for at most
 * `slice_ns`, or until every rank's probes have arrived. Each call adds to what earlier
 * ones have heard: a rank calls again until all ranks have heard all, or until it gives
 * up. Returns 0 with `probe` written, or a negative error.
 */
int mmc_team_probe(struct mmc_team *team, uint64_t slice_ns,
		   struct mmc_probe *probe);

/* The datagrams of a survey are numbered; no number reaches this. */
#define MMC_SURVEY_NUMBERS_MAX 65536
/* The shortest payload of a datagram in a survey. */
#define MMC_SURVEY_BYTES_MIN 8

/* This rank's observations of another rank in a survey. */
struct mmc_hearing {
	uint32_t ndistinct;	/* distinct numbers received */
	uint32_t nduplicates;	/* datagrams that repeat a number */
	uint32_t longest_bytes; /* longest payload received */
	uint32_t nanswers;	/* answers received to this rank's questions */
	uint32_t round_trip_us; /* the shortest time that an answer took */
	uint64_t first_ns;	/* arrival of the first distinct number */
	uint64_t last_ns;	/* arrival of the last distinct number */
};

/*
 * Begins a survey, and ends the previous one: from now on the datagrams of each other
 * rank are counted, by their number, which is below `nnumbers`. All ranks give the same
 * `id`, which no earlier survey had, and none may send before all have begun. Returns 0
 * or a negative error.
 */
int mmc_team_survey_begin(struct mmc_team *team, uint32_t id,
			  uint32_t nnumbers);

/*
 * Datagrams of a survey that have consecutive numbers, `count` of them from `first` on.
 */
struct mmc_burst {
	uint32_t peer; /* a rank, or UINT32_MAX for multicast */
	uint32_t first;
	uint32_t count;
	uint32_t nbytes; /* payload of each datagram */
	/* Whether they go the way of control messages and ask for answers. */
	uint32_t asks;
};

/* Sends the datagrams of `burst` as fast as they go. Returns 0 or a negative error. */
int mmc_team_survey_send(struct mmc_team *team, const struct mmc_burst *burst);

/*
 * Listens for `slice_ns`. A rank answers questions only while it listens or sends.
 * Returns 0, and writes what has been heard of each rank since the survey began to
 * `heard`, which is [nranks]; or returns a negative error.
 */
int mmc_team_survey_listen(struct mmc_team *team, uint64_t slice_ns,
			   struct mmc_hearing *heard);

#endif
