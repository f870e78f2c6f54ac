/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of streams and teams, as stats() shows them, and the strangers whose
 * datagrams a team has refused.
 */
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

/* Why a datagram was refused: counted, dropped, and never answered. */
enum mmc_refusal {
	MMC_REFUSED_FOREIGN =
		0, /* its source, channel, epoch or chunk is not ours */
	MMC_REFUSED_MALFORMED = 1, /* its length or a field is not possible */
	MMC_REFUSED_CORRUPT = 2,   /* its checksum is wrong */
	MMC_REFUSED_FORGED = 3,	   /* it was not made by the rank it names */
	MMC_REFUSED_REPLAYED = 4,  /* that rank has sent it before */
	MMC_REFUSAL_COUNT = 5,
};

/* The most strangers of which a team keeps account. */
#define MMC_STRANGERS_MAX 16

/* The rank of a stranger that has no rank's address. */
#define MMC_STRANGER_NO_RANK 0xffffffff

/* An address from which refused datagrams came. It may be forged itself. */
struct mmc_stranger {
	uint32_t rank;	   /* whose address it is, or MMC_STRANGER_NO_RANK */
	uint32_t ip;	   /* IPv4, host order; 0: the rank's, or not known */
	uint32_t port;	   /* of UDP; 0 likewise */
	uint64_t first_ns; /* on the team's clock: the first refused datagram */
	uint64_t last_ns;  /* the latest */
	/*
	 * How many were refused, by cause (enum mmc_refusal). While the kernel filters
	 * a flood this is an estimate, from one in MMC_SAMPLED datagrams, for which a
	 * train of datagrams counts as one.
	 */
	uint64_t ndatagrams[5];
};

/* In a flood the kernel lets one in so many of a stranger's datagrams pass. */
#define MMC_SAMPLED 64

/*
 * Copies the strangers of which a team keeps account to `strangers`, room for
 * MMC_STRANGERS_MAX; of more, those refused least recently are forgotten. Returns how
 * many there are.
 */
uint32_t mmc_team_strangers(struct mmc_team *team,
			    struct mmc_stranger *strangers);

#endif
