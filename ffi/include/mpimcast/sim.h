/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator: engines of any number of ranks on a simulated network, in one process
 * and in virtual time. A run depends on its spec alone, so the same spec gives the same
 * result on every machine.
 *
 * A run carries out operations, measures them, and checks every property that it can
 * see: that the results are right, that all operations end, that nothing is sent
 * outside the protocol, that no buffer is written after its release, and that every
 * datagram is accounted for.
 */
#ifndef MPIMCAST_SIM_H
#define MPIMCAST_SIM_H

#include <mpimcast/fabric.h>
#include <mpimcast/mmc.h>
#include <mpimcast/script.h>
#include <mpimcast/trace.h>

/* Bytes of the text that describes a broken property, with the final 0. */
#define MMC_SIM_TEXT_SIZE 256

#define MMC_SIM_NOBODY 0xffffffff /* in place of a rank or a kind: none */

/*
 * From this number of ranks on, datagrams carry stamps of so many bytes that identify
 * payloads instead of the payloads themselves, to save time and memory.
 */
#define MMC_SIM_STAMPED_RANKS 65
#define MMC_SIM_STAMP_BYTES 4

/*
 * The kinds of outages: of all multicast, of all traffic of one rank, of all links between
 * a switch and other switches, or of one link between switches.
 */
enum mmc_sim_outage {
	MMC_SIM_OUTAGE_NONE = 0,
	MMC_SIM_OUTAGE_MULTICAST = 1,
	MMC_SIM_OUTAGE_HOST = 2,
	MMC_SIM_OUTAGE_LEAF = 3,
	MMC_SIM_OUTAGE_LINK = 4,
};

/*
 * Times are in nanoseconds (_ns), rates in Mbit/s (_mbits), probabilities in parts per
 * million (_ppm). What a spec leaves open, a run draws from the seed.
 */
struct mmc_sim_spec {
	uint64_t seed;

	/* The operations. In an Allgatherv each rank draws a size up to block_bytes. */
	uint32_t nranks;
	uint32_t nstreams;
	/*
	 * Operations of each stream, one after the other. 0, which only a run with a
	 * script may have: there are no ranks.
	 */
	uint32_t nops;
	uint32_t kind; /* enum mmc_kind; 0: each operation draws its own */
	uint32_t root; /* of Bcasts; MMC_SIM_NOBODY: each draws its own */
	uint64_t block_bytes; /* what a rank contributes to an operation */
	/* Whether each operation draws a size up to block_bytes. */
	uint32_t vary_blocks;
	/* Whether a stream's operations are all started at once. */
	uint32_t pipelined;
	/* Whether each rank starts the streams in an order of its own. */
	uint32_t shuffled;
	uint32_t in_place;	  /* whether some ranks use MPI_IN_PLACE */
	uint64_t entry_spread_ns; /* longest delay of a rank's first entry */
	uint64_t gap_spread_ns;	  /* longest pause before each next operation */
	uint32_t delayed_rank;	  /* the rank that enters later than it would */
	uint64_t delay_ns;	  /* by how much it enters later */

	/* The protocol, as in struct mmc_stream_options and team options. */
	uint32_t chains;
	uint32_t subgroups;
	uint32_t repair;
	uint32_t code_data;
	uint32_t code_parity;
	uint32_t code_auto;
	uint32_t checksum;
	/*
	 * enum mmc_protect; a stand-in seals, which remembers the nonces (sim/seals.h).
	 * Not with zero_copy.
	 */
	uint32_t protect;
	uint32_t chunk_bytes;
	uint32_t window_bytes;
	uint32_t adaptive; /* whether windows adapt to the network's queues */
	/* The rate that ranks take for measured at the beginning; 0: none. */
	uint32_t known_mbits;
	uint32_t eager_bytes;
	uint64_t timeout_ns;
	uint64_t entry_timeout_ns;
	uint64_t late_timeout_ns;

	/* The hosts. */
	uint64_t buffer_bytes; /* data that a host's receive buffer holds */
	uint64_t send_bytes;   /* data that may wait for a host's link */
	uint64_t wake_ns;      /* time from an arrival until the engine runs */
	uint32_t host_ranks;   /* consecutive ranks that stall together */
	uint64_t place_ns;     /* time that a placement takes; 0: none */
	/* Time that the engine takes for each datagram that it has polled. */
	uint64_t receive_ns;
	/* Bit r: rank r can register only a few regions of memory at a time. */
	uint64_t tight_ranks;
	uint32_t registrations; /* how many regions those ranks can register */
	/*
	 * Receives that a host has posted for each subgroup, to place chunks directly;
	 * 0: chunks are copied to their places.
	 */
	uint32_t zero_copy;

	/*
	 * The network. On a fabric of the caller's, only detour_ns, duplicate_ppm and
	 * uneven have a meaning: the fabric's links say the rest.
	 */
	uint32_t nswitches;   /* leaf switches under a spine; 1: one switch */
	uint32_t link_mbits;  /* of a link between a host and its switch */
	uint32_t trunk_mbits; /* of a link between a leaf and the spine */
	uint32_t latency_ns;  /* of each link */
	uint32_t jitter_ns;   /* random addition on the link to a host */
	/* Whether each link draws its own latency and jitter, up to these. */
	uint32_t uneven;
	uint32_t detour_ns;   /* longest extra delay of a flow over the spine */
	uint64_t queue_bytes; /* of each switch port */
	uint32_t loss_ppm;    /* on each link to a host, independently */
	uint32_t uplink_loss_ppm; /* on other links, for all hosts behind */
	/*
	 * The mean number of consecutive datagrams that a link loses; 0 or 1: losses
	 * are independent.
	 */
	uint32_t loss_period;
	uint32_t duplicate_ppm;	    /* datagrams that arrive twice */
	char fault[MMC_FAULT_SIZE]; /* FAULT setting of each endpoint, or "" */
	/*
	 * Whether traffic is counted, but not checked against the protocol: with a
	 * fault in what is sent (dir=tx), good senders would seem to break it.
	 */
	uint32_t unwatched;

	/* The mishaps of the run. */
	/*
	 * The rank that stalls, together with the other ranks of its host: for stall_ns
	 * from stall_begin_ns on, and again after each stall_period_ns. MMC_SIM_NOBODY:
	 * all ranks stall, those of each host at times of their own.
	 */
	uint32_t stalled_rank;
	uint64_t stall_begin_ns;
	uint64_t stall_ns;
	uint64_t stall_period_ns;
	uint32_t dead_rank; /* the rank whose host is off from dead_ns on */
	uint64_t dead_ns;
	uint32_t ended_rank; /* the rank whose process ends at ended_ns */
	uint64_t ended_ns;
	uint32_t cancelling_rank; /* the rank that cancels its operations */
	uint64_t cancel_ns;	  /* when it does */
	uint64_t deaf_ranks;	  /* bit r: rank r gets no multicast */
	uint64_t deaf_ns;	  /* start of the deafness */
	uint64_t deaf_end_ns;	  /* end of the deafness; 0: it lasts */
	uint32_t outage;	  /* enum mmc_sim_outage */
	uint32_t outage_place;	  /* the rank, switch or link that is cut off */
	uint64_t outage_ns;	  /* start of the outage */
	uint64_t outage_end_ns;	  /* end of the outage */
	/*
	 * The kind of the one control datagram that the network loses: an enum
	 * mmc_message_kind, or the number behind its last for a record of a rank that
	 * is done; MMC_SIM_NOBODY: none is lost. Of the datagrams of this kind that a
	 * run without the loss sends, it is the last but `drop_nth`.
	 */
	uint32_t drop_kind;
	uint32_t drop_nth;

	/* Limits within which a run must end. */
	uint64_t limit_ns;
	uint64_t limit_events;
};

/*
 * Writes the spec of one operation of 4 ranks on a switch of 100 Gbit/s, without
 * mishaps.
 */
void mmc_sim_spec_init(struct mmc_sim_spec *spec);

/* Writes the spec of random case number `seed`: all kinds of networks and mishaps. */
void mmc_sim_case(uint64_t seed, struct mmc_sim_spec *spec);

/* Writes the spec of mmc_sim_case() with a code, and mostly with losses for it to mend. */
void mmc_sim_coded_case(uint64_t seed, struct mmc_sim_spec *spec);

/* A lossy link, as RELIABILITY=auto forecasts operations on it. */
struct mmc_sim_outlook {
	uint64_t data_ns;      /* how long the data alone is on the link */
	uint64_t trip_ns;      /* from when a chunk is missing to its repair */
	uint32_t block_chunks; /* of the data */
	uint32_t tail_chunks;  /* those that arrive in the last trip */
	uint32_t nreceivers;
	uint32_t loss_ppm; /* independent losses */
};

/*
 * Returns what RELIABILITY=auto takes for the cost of an operation: half the mean and half
 * the 99th percentile of its time. With 0 `data_chunks` lost chunks are repeated; else
 * `parity_chunks` go with each group of so many.
 */
uint64_t mmc_sim_forecast_ns(const struct mmc_sim_outlook *outlook,
			     uint32_t data_chunks, uint32_t parity_chunks);

/*
 * Writes the spec of random case number `seed` with `nranks_min` to `nranks_max` ranks.
 * Its paths differ, machines may stall, and the network may fail for a while.
 */
void mmc_sim_crowd(uint64_t seed, uint32_t nranks_min, uint32_t nranks_max,
		   struct mmc_sim_spec *spec);

/* Traffic by kind: 0 multicast, 1 control, 2 repair. */
struct mmc_sim_traffic {
	uint64_t datagrams[3];
	uint64_t bytes[3]; /* including this library's header */
};

/* What a run has measured of one rank. */
struct mmc_sim_rank {
	int error; /* of its first failed operation, or 0 */
	uint32_t failed_ops;
	uint32_t done_ops;
	uint64_t end_ns;	/* when its last operation ended */
	uint64_t script_end_ns; /* when it received the script's last message */
	uint64_t busy_ns;	/* longest time of one operation */
	uint64_t last_ns;	/* time of its last operation */
	struct mmc_sim_traffic tx;
	struct mmc_sim_traffic rx;
	uint64_t overrun_datagrams; /* dropped because its buffer was full */
	uint64_t lost_chunks;
	uint64_t repaired_chunks;
	uint64_t duplicate_chunks;
	uint64_t reads; /* reads of chunks from the left neighbour */
	/* The rest are the counters of these names. */
	uint64_t read_chunks;
	uint64_t failed_reads;
	uint64_t registrations;
	uint64_t parity_sent;
	uint64_t parity_used;
	uint64_t groups_mended;
	uint64_t fell_back;
	uint64_t zero_copy_chunks;
	uint64_t evacuated_chunks;
	uint64_t rx_forged;
	uint64_t rx_replayed;
};

/* What a run has measured of one direction of a link. */
struct mmc_sim_link {
	char name[32];
	/*
	 * Including 42 bytes of Ethernet, IP and UDP headers per datagram, and the
	 * packets of a script.
	 */
	uint64_t bytes;
	uint64_t kind_bytes[3]; /* by kind, as in struct mmc_sim_traffic */
	uint64_t datagrams;
	uint64_t packets;	       /* of a script's messages */
	uint64_t deepest_bytes;	       /* the most that its queue has held */
	uint64_t lost_datagrams;       /* at random, or in an outage */
	uint64_t overflowed_datagrams; /* for lack of room in its queue */
};

/* The costs of a run for which sim/laws.h has bounds. */
struct mmc_sim_figures {
	/*
	 * Chunks that receivers lack because the network lost them, summed over the
	 * receivers; a lost repair counts once.
	 */
	uint64_t lacked_chunks;
	uint64_t lacked_control; /* the same of control datagrams */
	/* Chunks that were sent again, a multicast counted once, or read. */
	uint64_t repair_chunks;
	/*
	 * Control datagrams that one rank sent in one operation, and the bound for
	 * them: those of the rank and the operation that come closest to their bound.
	 * Questions about stalled ranks, and answers to them, do not count.
	 */
	uint32_t control_most;
	uint32_t control_bound;
	/* The most questions that one rank asked about stalled ranks. */
	uint32_t excused_most;
	uint32_t unicast_ops; /* operations in which nothing was multicast */
	/* The least window on which ranks agreed for an operation. */
	uint32_t agreed_bytes;
	/* The least window that a rank has learnt at the end; 0: no limit. */
	uint32_t window_bytes;
};

/* What a run has measured and found. */
struct mmc_sim_result {
	uint32_t nranks;
	uint32_t nlinks;
	struct mmc_sim_rank *ranks; /* [nranks] */
	struct mmc_sim_link *links; /* [nlinks] */
	/* Whether datagrams carried stamps, whose bytes are counted as payload. */
	uint32_t stamped;
	uint64_t time_ns;   /* from the first start to the last end */
	uint64_t script_ns; /* when the last measured message was received */
	uint64_t last_arrival_ns; /* when the last datagram arrived */
	uint64_t events;	  /* steps of the simulation */
	uint64_t datagrams;	  /* delivered to hosts */
	uint64_t sealed;	  /* datagrams that were sealed */
	struct mmc_sim_figures figures;
	/* Which property was broken first, and how; "" if none was. */
	char violation[MMC_SIM_TEXT_SIZE];
};

/*
 * Runs a spec to its end. Returns 0 and fills `result`, even if a property was broken;
 * mmc_sim_result_clear() must then free it. Returns -MMC_EINVAL if the spec cannot be
 * run, or -MMC_ENOMEM.
 */
int mmc_sim_run(const struct mmc_sim_spec *spec, struct mmc_sim_result *result);

/*
 * Does what mmc_sim_run() does, on a fabric of the caller's or on that of the spec if
 * `fabric` is NULL, while the messages of `script` are sent as well unless it is NULL.
 * Rank r is host r of the fabric, which may have more hosts. Both arguments are only read
 * during the call. Returns -MMC_EINVAL also if the fabric or the script is not as its
 * header demands.
 *
 * Adds to `trace`, unless it is NULL, what all ranks' streams do, in virtual time: stream
 * s of rank r is track r * nstreams + s. Waits are not among it, since no caller of a
 * simulated rank waits. If datagrams carry stamps, the bytes of operations are those
 * of the stamps. With drop_kind there may be the events of two runs. There are at most
 * 65,536 tracks, else -MMC_EINVAL is returned.
 */
int mmc_sim_run_on(const struct mmc_sim_spec *spec,
		   const struct mmc_fabric *fabric,
		   const struct mmc_script *script, struct mmc_trace *trace,
		   struct mmc_sim_result *result);

/* Frees what mmc_sim_run() has allocated for `result`. */
void mmc_sim_result_clear(struct mmc_sim_result *result);

/*
 * Runs `count` cases of mmc_sim_case(), from seed `first` on, until one breaks a
 * property. Returns how many broke none: if that is fewer than `count`, then `first`
 * plus that number is the seed that did, and the reason is written to `violation`,
 * MMC_SIM_TEXT_SIZE long.
 */
uint64_t mmc_sim_run_cases(uint64_t first, uint64_t count, char *violation);

/* Does what mmc_sim_run_cases() does, but with the cases of mmc_sim_crowd(). */
uint64_t mmc_sim_run_crowds(uint64_t first, uint64_t count, uint32_t nranks_min,
			    uint32_t nranks_max, char *violation);

#endif
