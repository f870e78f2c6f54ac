/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator: engines of any number of ranks on a simulated network, in one process
 * and in virtual time. A run depends on its spec alone, so the same spec gives the same
 * result on every machine.
 *
 * A run carries out operations, measures them, and checks every property that it can
 * see: right bytes, an end, nothing sent outside the protocol, nothing written after
 * release, every datagram accounted for.
 */
#ifndef MPIMCAST_SIM_H
#define MPIMCAST_SIM_H

#include <mpimcast/mmc.h>

#define MMC_SIM_TEXT_SIZE 256
#define MMC_SIM_NOBODY 0xffffffff /* in place of a rank or a kind */

/* From this number of ranks on, datagrams carry stamps instead of payloads. */
#define MMC_SIM_STAMPED_RANKS 65

/* The kinds of outages: of all multicast, or of all traffic of one rank or leaf. */
enum mmc_sim_outage {
	MMC_SIM_OUTAGE_NONE = 0,
	MMC_SIM_OUTAGE_MULTICAST = 1,
	MMC_SIM_OUTAGE_HOST = 2,
	MMC_SIM_OUTAGE_LEAF = 3,
};

/* Probabilities are in parts per million, rates in Mbit/s, times in nanoseconds. */
struct mmc_sim_spec {
	uint64_t seed;

	/* The operations. In an Allgatherv each rank draws up to block_bytes. */
	uint32_t nranks;
	uint32_t nstreams;
	uint32_t nops; /* operations of each stream, one after the other */
	uint32_t kind; /* enum mmc_kind; 0: each operation draws its own */
	uint32_t root; /* of Bcasts; MMC_SIM_NOBODY: each draws its own */
	uint64_t block_bytes; /* what a rank contributes to an operation */
	uint32_t vary_blocks; /* operations draw sizes up to block_bytes */
	uint32_t pipelined;   /* start a stream's operations all at once */
	uint32_t shuffled; /* each rank starts the streams in its own order */
	uint32_t in_place; /* some ranks use MPI_IN_PLACE */
	uint64_t entry_spread_ns; /* longest delay of a rank's first entry */
	uint64_t gap_spread_ns;	  /* longest pause before each next operation */
	uint32_t late_rank; /* enters late_ns later; MMC_SIM_NOBODY: none */
	uint64_t late_ns;

	/* The protocol, as in struct mmc_stream_options and team options. */
	uint32_t chains;
	uint32_t subgroups;
	uint32_t repair;
	uint32_t checksum;
	uint32_t chunk_bytes;
	uint32_t window_bytes;
	uint32_t adaptive;    /* windows adapt to the network's queues */
	uint32_t known_mbits; /* rate that ranks have measured; 0: none */
	uint32_t eager_bytes;
	uint64_t timeout_ns;
	uint64_t entry_timeout_ns;
	uint64_t late_timeout_ns;

	/* The hosts. */
	uint64_t buffer_bytes; /* data that a host's receive buffer holds */
	uint64_t send_bytes;  /* data that a host can queue ahead of its link */
	uint64_t wake_ns;     /* time from an arrival until the engine runs */
	uint32_t host_ranks;  /* consecutive ranks that stall together */
	uint64_t place_ns;    /* time that a placement takes; 0: none */
	uint64_t tight_ranks; /* bit r: rank r registers few regions */
	uint32_t registrations; /* how many a tight rank registers at a time */
	/*
	 * Receives that a host has posted for each subgroup, to place chunks directly;
	 * 0: chunks are copied to their places.
	 */
	uint32_t zero_copy;

	/* The network. */
	uint32_t nswitches; /* leaves under a spine; 1: a single switch */
	uint32_t link_mbits;
	uint32_t trunk_mbits;
	uint32_t latency_ns; /* of each link */
	uint32_t jitter_ns;  /* random addition on the link to a host */
	/*
	 * Each link draws its own latency and jitter, up to latency_ns and jitter_ns.
	 */
	uint32_t uneven;
	uint32_t detour_ns;   /* longest extra delay of a flow over the spine */
	uint64_t queue_bytes; /* of each switch port */
	uint32_t loss_ppm;    /* on each link to a host, independently */
	uint32_t uplink_loss_ppm; /* on other links, for all hosts behind */
	uint32_t duplicate_ppm;
	char fault[MMC_FAULT_SIZE]; /* FAULT setting of each endpoint, or "" */
	/* Traffic is only counted: faults with dir=tx make good senders look bad. */
	uint32_t unwatched;

	/* The mishaps of the run. */
	/*
	 * The rank that stalls, with the host_ranks of its host, for stall_ns of every
	 * stall_period_ns, first from stall_begin_ns on; MMC_SIM_NOBODY: all ranks,
	 * each host at times of its own.
	 */
	uint32_t stalled_rank;
	uint64_t stall_begin_ns;
	uint64_t stall_ns;
	uint64_t stall_period_ns;
	uint32_t dead_rank; /* its host is off from dead_ns on */
	uint64_t dead_ns;
	uint32_t ended_rank; /* its process ends at ended_ns */
	uint64_t ended_ns;
	uint32_t cancelling_rank; /* cancels its operations at cancel_ns */
	uint64_t cancel_ns;
	uint64_t deaf_ranks;	/* bit r: rank r gets no multicast */
	uint64_t deaf_ns;	/* start of the deafness */
	uint64_t deaf_end_ns;	/* end of the deafness; 0: it lasts */
	uint32_t outage;	/* enum mmc_sim_outage */
	uint32_t outage_place;	/* the rank or leaf that is cut off */
	uint64_t outage_ns;	/* start of the outage */
	uint64_t outage_end_ns; /* end of the outage */
	/*
	 * The network loses one control datagram of this kind: enum mmc_message_kind,
	 * or 8 for a record of a rank that is done. It is the drop_nth before the last
	 * one that a run without this loss sends.
	 */
	uint32_t drop_kind;
	uint32_t drop_nth;

	/* Limits within which a run must end. */
	uint64_t limit_ns;
	uint64_t limit_events;
};

/* Writes the spec of one operation of 4 ranks on a healthy 100 Gbit/s switch. */
void mmc_sim_spec_init(struct mmc_sim_spec *spec);

/* Writes the spec of the test's random case `seed`. */
void mmc_sim_case(uint64_t seed, struct mmc_sim_spec *spec);

/*
 * Writes the spec of random case `seed` with `nranks_min` to `nranks_max` ranks, where
 * machines may stall and paths differ, but mostly no worse.
 */
void mmc_sim_crowd(uint64_t seed, uint32_t nranks_min, uint32_t nranks_max,
		   struct mmc_sim_spec *spec);

/* Traffic by kind: multicast, control, repair. */
struct mmc_sim_traffic {
	uint64_t datagrams[3];
	uint64_t bytes[3]; /* with this library's header */
};

struct mmc_sim_rank {
	int error; /* of its first failed operation, or 0 */
	uint32_t failed_ops;
	uint32_t done_ops;
	uint64_t end_ns;  /* end of its last operation */
	uint64_t busy_ns; /* longest time of one operation */
	struct mmc_sim_traffic tx;
	struct mmc_sim_traffic rx;
	uint64_t overrun_datagrams; /* dropped because its buffer was full */
	uint64_t lost_chunks;
	uint64_t repaired_chunks;
	uint64_t duplicate_chunks;
	uint64_t reads; /* reads of chunks from the left neighbour */
	uint64_t read_chunks;
	uint64_t failed_reads;
	uint64_t registrations;
	uint64_t zero_copy_chunks;
	uint64_t evacuated_chunks;
};

struct mmc_sim_link {
	char name[32];
	uint64_t bytes; /* with 42 bytes of Ethernet, IP, UDP per datagram */
	uint64_t datagrams;
	uint64_t lost_datagrams;
	uint64_t overflowed_datagrams;
};

/* The costs of a run that laws bound (sim/laws.h). */
struct mmc_sim_figures {
	/* Chunks lost on the way, once per receiver; a lost repair counts once. */
	uint64_t lacked_chunks;
	uint64_t lacked_control;
	uint64_t repair_chunks; /* sent again (a multicast once), or read */
	/*
	 * Control datagrams of the rank, in one operation, that comes closest to its
	 * bound; questions about stalled ranks, and answers to them, are counted apart.
	 */
	uint32_t control_most;
	uint32_t control_bound;
	uint32_t excused_most; /* most questions about stalled ranks */
	uint32_t unicast_ops;  /* operations in which nothing was multicast */
	uint32_t agreed_bytes; /* the least window of an operation */
	uint32_t window_bytes; /* the least final window; 0: no limit */
};

struct mmc_sim_result {
	uint32_t nranks;
	uint32_t nlinks;
	struct mmc_sim_rank *ranks;
	struct mmc_sim_link *links;
	uint32_t stamped; /* datagrams carried stamps, counted as payload */
	uint64_t time_ns; /* from the first start to the last end */
	uint64_t idle_ns; /* arrival of the last datagram */
	uint64_t events;
	uint64_t datagrams; /* delivered to hosts */
	struct mmc_sim_figures figures;
	/* The first broken property, or "". */
	char violation[MMC_SIM_TEXT_SIZE];
};

/*
 * Runs a spec to its end. Returns 0 with `result` filled, even if a property was
 * violated; it is to be cleared with mmc_sim_result_clear(). Returns -MMC_EINVAL if the
 * spec cannot be run, or -MMC_ENOMEM.
 */
int mmc_sim_run(const struct mmc_sim_spec *spec, struct mmc_sim_result *result);

void mmc_sim_result_clear(struct mmc_sim_result *result);

/*
 * Runs `count` random cases, from seed `first` on. Returns how many held: if fewer than
 * `count`, case `first` + that number is the first that did not, and `violation`,
 * MMC_SIM_TEXT_SIZE long, says why.
 */
uint64_t mmc_sim_run_cases(uint64_t first, uint64_t count, char *violation);

/* Does the same for the cases of mmc_sim_crowd(). */
uint64_t mmc_sim_run_crowds(uint64_t first, uint64_t count, uint32_t nranks_min,
			    uint32_t nranks_max, char *violation);

#endif
