/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator: engines of any number of ranks on a simulated network, in one
 * process and in virtual time. A run depends on nothing but its spec, so the
 * same spec gives the same result on every machine.
 *
 * A run carries out operations, checks every property that it can see (right
 * bytes, an end, nothing sent outside the protocol, nothing written after
 * release, every datagram accounted for) and measures.
 */
#ifndef MPIMCAST_SIM_H
#define MPIMCAST_SIM_H

#include <mpimcast/mmc.h>

#define MMC_SIM_TEXT_SIZE 256
#define MMC_SIM_NOBODY 0xffffffff /* in place of a rank or a kind */

/* From this number of ranks on, datagrams carry stamps instead of payloads. */
#define MMC_SIM_STAMPED_RANKS 65

/* What an outage takes: all multicast, or what one rank or leaf sends and gets. */
enum mmc_sim_outage {
	MMC_SIM_OUTAGE_NONE = 0,
	MMC_SIM_OUTAGE_MULTICAST = 1,
	MMC_SIM_OUTAGE_HOST = 2,
	MMC_SIM_OUTAGE_LEAF = 3,
};

/* Probabilities are in parts per million, rates in Mbit/s. */
struct mmc_sim_spec {
	uint64_t seed;

	/* The operations; of an Allgatherv each rank draws up to block_bytes. */
	uint32_t nranks;
	uint32_t nstreams;
	uint32_t nops; /* of each stream, one after the other */
	uint32_t kind; /* enum mmc_kind; 0: each operation draws its own */
	uint32_t root; /* of Bcasts; MMC_SIM_NOBODY: each draws its own */
	uint64_t block_bytes; /* that a rank contributes to an operation */
	uint32_t vary_blocks; /* each operation draws its own size up to that */
	uint32_t pipelined;   /* start all at once instead of one by one */
	uint32_t shuffled; /* each rank starts the streams in its own order */
	uint32_t in_place; /* some ranks use MPI_IN_PLACE */
	uint64_t entry_spread_ns; /* each rank first enters within this time */
	uint64_t gap_spread_ns; /* likewise pauses before each next operation */
	uint32_t late_rank;	/* enters after late_ns; or MMC_SIM_NOBODY */
	uint64_t late_ns;

	/* The protocol, as in struct mmc_stream_options and team options. */
	uint32_t chains;
	uint32_t subgroups;
	uint32_t repair;
	uint32_t checksum;
	uint32_t chunk_bytes;
	uint32_t window_bytes;
	uint32_t adaptive; /* windows find out what the network's queues hold */
	uint32_t known_mbits; /* the rate that ranks remember; 0: none */
	uint32_t eager_bytes;
	uint64_t timeout_ns;
	uint64_t entry_timeout_ns;
	uint64_t late_timeout_ns;

	/* The hosts. */
	uint64_t buffer_bytes; /* of data that a host can receive unread */
	uint64_t send_bytes;   /* that a host can send ahead of its link */
	uint64_t wake_ns;      /* from an arrival until the engine runs */
	uint32_t host_ranks;   /* neighbours that stand still together */
	uint64_t place_ns; /* from a placement asked for to made; 0: at once */
	uint64_t tight_ranks;	/* bit r: rank r's host registers no more ... */
	uint32_t registrations; /* ... than so many regions at a time */
	/*
	 * Receives that a host has posted for each subgroup, to take chunks
	 * right to their places; 0: chunks are copied there.
	 */
	uint32_t zero_copy;

	/* The network. */
	uint32_t nswitches; /* leaves under a spine; 1: a single switch */
	uint32_t link_mbits;
	uint32_t trunk_mbits;
	uint32_t latency_ns; /* of each link */
	uint32_t jitter_ns;  /* at random on top, on the way to a host */
	uint32_t uneven;     /* each link draws its own two, up to those */
	uint32_t detour_ns; /* flows take other ways over the spine, later by up
			     * to this */
	uint64_t queue_bytes;	  /* of each switch port */
	uint32_t loss_ppm;	  /* on the way to each host on its own */
	uint32_t uplink_loss_ppm; /* on every other link: for all behind it */
	uint32_t duplicate_ppm;
	char fault[MMC_FAULT_SIZE]; /* FAULT setting, round each endpoint */
	/*
	 * What is sent is not judged. For faults with dir=tx, which make good
	 * senders look bad.
	 */
	uint32_t unwatched;

	/* What goes wrong. */
	/*
	 * A rank, or each at other times (MMC_SIM_NOBODY), stands still for
	 * stall_ns of every stall_period_ns, first from stall_begin_ns on; so do
	 * the host_ranks of a host.
	 */
	uint32_t stalled_rank;
	uint64_t stall_begin_ns;
	uint64_t stall_ns;
	uint64_t stall_period_ns;
	uint32_t dead_rank; /* its host is off from dead_ns on */
	uint64_t dead_ns;
	uint32_t ended_rank; /* its process has ended from ended_ns on */
	uint64_t ended_ns;
	uint32_t cancelling_rank; /* gives up what it has in flight then */
	uint64_t cancel_ns;
	uint64_t deaf_ranks;  /* bit r: rank r gets no multicast ... */
	uint64_t deaf_ns;     /* ... from here on */
	uint64_t deaf_end_ns; /* and up to here; 0: for good */
	uint32_t outage; /* enum mmc_sim_outage: what carries nothing ... */
	uint32_t outage_place;	/* of that rank or leaf ... */
	uint64_t outage_ns;	/* from here ... */
	uint64_t outage_end_ns; /* to here */
	/*
	 * The network loses one control datagram of this kind (enum
	 * mmc_message_kind, or 7 for a record of a rank that is done), the nth
	 * before the last that a run without this loss would send.
	 */
	uint32_t drop_kind;
	uint32_t drop_nth;

	/* Where a run must have ended. */
	uint64_t limit_ns;
	uint64_t limit_events;
};

/* The spec of one operation of 4 ranks on a healthy 100 Gbit/s switch. */
void mmc_sim_spec_init(struct mmc_sim_spec *spec);

/* The spec of random case `seed` of the test. */
void mmc_sim_case(uint64_t seed, struct mmc_sim_spec *spec);

/*
 * The spec of random case `seed` of many ranks, from `nranks_min` to `nranks_max`, where
 * machines and networks are not still, and mostly no worse.
 */
void mmc_sim_crowd(uint64_t seed, uint32_t nranks_min, uint32_t nranks_max,
		   struct mmc_sim_spec *spec);

/* Traffic by kind: multicast, control, repair. */
struct mmc_sim_traffic {
	uint64_t datagrams[3];
	uint64_t bytes[3]; /* with our header */
};

struct mmc_sim_rank {
	int error; /* of its first failed operation, or 0 */
	uint32_t failed_ops;
	uint32_t done_ops;
	uint64_t end_ns;  /* when its last operation was over */
	uint64_t busy_ns; /* the longest operation, from its start */
	struct mmc_sim_traffic tx;
	struct mmc_sim_traffic rx;
	uint64_t overrun_datagrams; /* dropped because its buffer was full */
	uint64_t lost_chunks;
	uint64_t repaired_chunks;
	uint64_t duplicate_chunks;
	uint64_t reads; /* of chunks in the left neighbour's memory */
	uint64_t read_chunks;
	uint64_t failed_reads;
	uint64_t registrations;
	uint64_t zero_copy_chunks;
	uint64_t evacuated_chunks;
};

struct mmc_sim_link {
	char name[32];
	uint64_t bytes; /* with 42 bytes of Ethernet, IP, UDP each */
	uint64_t datagrams;
	uint64_t lost_datagrams;
	uint64_t overflowed_datagrams;
};

/* What the run has cost, as far as laws bound it (sim/laws.h). */
struct mmc_sim_figures {
	uint64_t
		lacked_chunks; /* that networks and hosts lost, for each receiver */
	uint64_t lacked_control;
	uint64_t repair_chunks; /* sent again, a multicast once, or read */
	uint32_t
		control_most; /* control datagrams of a rank in an operation ... */
	uint32_t control_bound; /* ... which comes closest to this bound ... */
	uint32_t excused_most;	/* ... questions about standing ranks apart */
	uint32_t unicast_ops;	/* operations in which nothing was multicast */
	uint32_t agreed_bytes;	/* the least window of an operation */
	uint32_t
		window_bytes; /* the least that a rank ended with; 0: no limit */
};

struct mmc_sim_result {
	uint32_t nranks;
	uint32_t nlinks;
	struct mmc_sim_rank *ranks;
	struct mmc_sim_link *links;
	uint32_t stamped; /* datagrams carried stamps, counted as payload */
	uint64_t time_ns; /* from the first start to the last end */
	uint64_t idle_ns; /* when the last datagram had arrived */
	uint64_t events;
	uint64_t datagrams; /* delivered to hosts */
	struct mmc_sim_figures figures;
	char violation
		[MMC_SIM_TEXT_SIZE]; /* the first broken property, or "" */
};

/*
 * Runs a spec to its end. Returns 0 with `result` filled, to be cleared with
 * mmc_sim_result_clear(), also if a property was violated; -MMC_EINVAL if the
 * spec cannot be run, or -MMC_ENOMEM.
 */
int mmc_sim_run(const struct mmc_sim_spec *spec, struct mmc_sim_result *result);

void mmc_sim_result_clear(struct mmc_sim_result *result);

/*
 * Runs the random cases from seed `first` on, `count` of them. Returns how many
 * held; if fewer than `count`, case `first` + the number returned is the first
 * that did not, and `violation`, MMC_SIM_TEXT_SIZE long, says why.
 */
uint64_t mmc_sim_run_cases(uint64_t first, uint64_t count, char *violation);

/* Likewise those of mmc_sim_crowd(). */
uint64_t mmc_sim_run_crowds(uint64_t first, uint64_t count, uint32_t nranks_min,
			    uint32_t nranks_max, char *violation);

#endif
