/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measurements of the network between the ranks. The operations of a stream share
 * it, so that each begins with what the last one learnt.
 */
#ifndef MMC_CORE_FLOW_PATH_H
#define MMC_CORE_FLOW_PATH_H

#include "core/flow/losses.h"
#include "core/flow/rate.h"
#include "core/flow/window.h"
#include "core/types.h"
#include "support/bits.h"

struct mmc_path {
	uint64_t srtt_ns; /* smoothed round trip of control messages */
	/* The shortest round trip lately, which is the network's own; 0: none yet. */
	uint64_t shortest_ns;
	uint64_t rate_bytes_per_s; /* rate at which a rank receives */
	/* The window that no queue on the way overflows. */
	struct mmc_window window;
	bool measured; /* the rate is no longer a guess */
	/* Chunks expected since the last one was heard by multicast. */
	uint32_t silent_chunks;
	/* When the first operation ended that expected the `silent_chunks`. */
	uint64_t silent_ns;
	bool unicast; /* multicast has been given up */
	/* With `unicast`: a sender of which nothing arrived. */
	uint32_t unheard;
	uint64_t retry_ns;    /* with `unicast`: when to try multicast again */
	uint64_t interval_ns; /* the time from one try to the next */
	uint32_t ndeaf; /* operations in a row that did not hear some sender */
	uint64_t deaf_ns; /* when the first of the `ndeaf` operations ended */
	/* Chunks and senders asked for in this operation that only were slow. */
	uint32_t nlate;
	/* The allowance for slow chunks, learnt from `nlate`. */
	uint64_t late_ns;
	/* The least time for which the slowest receiver is waited for. */
	uint64_t lag_ns;
	/*
	 * The network has lost chunks, so this rank multicasts its record behind its last
	 * chunk in so many more operations.
	 */
	uint32_t nlossy;
	struct mmc_losses losses; /* known where a code was asked for */
	/*
	 * The rate at which chunks follow the first one, which has no part of a round trip in
	 * it. It is known where a code was asked for; 0: not yet.
	 */
	uint64_t link_bytes_per_s;
	/*
	 * The shortest time, up to 10 ms, from a rank's entry to the first chunk that it
	 * received. A round trip takes no longer. It is known where a code was asked for; 0:
	 * not yet.
	 */
	uint64_t trip_most_ns;
	/*
	 * The smoothed round trip on which the ranks agreed in the last operation that could
	 * be coded: the longest of any rank.
	 */
	uint64_t agreed_srtt_ns;
	bool backlog; /* datagrams lie unread here: silence proves nothing */
	bool coded; /* parity went unasked in the last operation that could be coded */
};

/*
 * The round trip and the rate before anything is measured: the round trip is that of a
 * local network, and the rate is one that any link has, since too low a rate only makes
 * waits longer.
 */
#define MMC_PATH_SRTT_NS (100 * MMC_US_NS)
#define MMC_PATH_RATE_BYTES_PER_S UINT64_C(10000000)

/* The least time for which a sender with a full window waits: some round trips. */
#define MMC_PATH_LAG_NS (500 * MMC_US_NS)

/*
 * The same where ranks share processors: a sender that waited for less than a
 * scheduler's time slice would overrun every receiver that waits for a processor.
 */
#define MMC_PATH_LAG_CROWDED_NS (10 * MMC_MS_NS)

/* The least round trip: clocks are not finer, and repeating within 0 would not end. */
#define MMC_PATH_SRTT_MIN_NS (10 * MMC_US_NS)

/*
 * The longest round trip on a path that is not long: of a longer one the rest was spent
 * waiting for a processor.
 */
#define MMC_PATH_SRTT_SHORT_NS (10 * MMC_MS_NS)

/* A longer one says nothing of the network: it was spent waiting for a processor. */
#define MMC_PATH_SRTT_MAX_NS (400 * MMC_MS_NS)

/* Each round trip lets the shortest grow by this part, since paths may become longer. */
#define MMC_PATH_SHORTEST_PART 64

/*
 * A loss is remembered for so many operations: a network that loses a chunk now and then
 * counts as lossy all the time.
 */
#define MMC_PATH_LOSSY_OPERATIONS 16

/* Initializes a path of which nothing is measured, and whose window has no limit. */
static inline void mmc_path_init(struct mmc_path *path)
{
	*path = (struct mmc_path){
		.srtt_ns = MMC_PATH_SRTT_NS,
		.rate_bytes_per_s = MMC_PATH_RATE_BYTES_PER_S,
		.lag_ns = MMC_PATH_LAG_NS,
	};
}

/* Notes whether the network has lost chunks in an operation that has ended. */
static inline void mmc_path_note_losses(struct mmc_path *path, bool lost)
{
	if (lost)
		path->nlossy = MMC_PATH_LOSSY_OPERATIONS;
	else if (path->nlossy > 0)
		path->nlossy--;
}

/* Makes the path wait longer for slow receivers: ranks share processors. */
static inline void mmc_path_crowd(struct mmc_path *path)
{
	path->lag_ns = MMC_PATH_LAG_CROWDED_NS;
}

/* Returns the window that no queue on the way overflows; 0 for no limit. */
static inline uint32_t mmc_path_window_bytes(const struct mmc_path *path)
{
	return mmc_window_bytes(&path->window);
}

/* Sets the window, as if it had been learnt; 0 for no limit. */
static inline void mmc_path_set_window(struct mmc_path *path, uint32_t bytes)
{
	path->window.bytes = bytes;
}

/* Sets the rate at which a rank receives, as if it had been measured. */
static inline void mmc_path_set_rate(struct mmc_path *path,
				     uint64_t rate_bytes_per_s)
{
	path->rate_bytes_per_s = rate_bytes_per_s;
	path->measured = true;
}

/*
 * Returns the shortest round trip of a long path, where no measured one is shorter than
 * that bound; 0 for any other path.
 */
static inline uint64_t mmc_path_long_trip_ns(const struct mmc_path *path)
{
	return path->shortest_ns > MMC_PATH_SRTT_SHORT_NS ? path->shortest_ns
							  : 0;
}

/* Returns whether the path is long. On an adapter's processor no path counts as long. */
static inline bool mmc_path_is_long(const struct mmc_path *path)
{
#ifdef MMC_BARE
	(void)path;
	return false;
#else
	return mmc_path_long_trip_ns(path) > 0;
#endif
}

/*
 * Returns whether the path is long, and a window of `nbytes` less than twice what is under way
 * on it at this rate.
 */
static inline bool mmc_path_outgrows(const struct mmc_path *path,
				     uint64_t rate_bytes_per_s, uint32_t nbytes)
{
	uint64_t trip_us = path->shortest_ns / MMC_US_NS;

	return mmc_path_is_long(path) &&
	       nbytes < 2 * trip_us * (rate_bytes_per_s / 1000000);
}

/*
 * Smooths in a measured round trip (gain 1/8, as in RFC 6298). No round trip is shorter
 * than the shortest, so on a long path the first one counts at once. On others it may
 * have waited in queues of its own making.
 */
static inline void mmc_path_round_trip(struct mmc_path *path, uint64_t rtt_ns)
{
	uint64_t shortest_ns = path->shortest_ns;
	uint64_t long_ns, longest_ns, srtt_ns;

	if (rtt_ns > MMC_PATH_SRTT_MAX_NS)
		return;
	rtt_ns = mmc_max_u64(rtt_ns, MMC_PATH_SRTT_MIN_NS);
	shortest_ns += shortest_ns / MMC_PATH_SHORTEST_PART;
	if (shortest_ns == 0 || rtt_ns < shortest_ns)
		shortest_ns = rtt_ns;
	path->shortest_ns = shortest_ns;
	long_ns = mmc_path_long_trip_ns(path);
	longest_ns = MMC_PATH_SRTT_SHORT_NS + 2 * long_ns;
	srtt_ns = (7 * path->srtt_ns + mmc_min_u64(rtt_ns, longest_ns)) / 8;
	path->srtt_ns = mmc_min_u64(mmc_max_u64(srtt_ns, long_ns), longest_ns);
}

/*
 * Takes over the round trip of `other`, which has measured it last. Operations that have
 * ended may measure one, and those that begin then should know it.
 */
static inline void mmc_path_adopt_trip(struct mmc_path *path,
				       const struct mmc_path *other)
{
	path->srtt_ns = other->srtt_ns;
	path->shortest_ns = other->shortest_ns;
}

/*
 * Smooths in the rate of `nbytes` received in `time_ns`, unless the time is too short,
 * or the bytes too many, to calculate it.
 */
static inline void mmc_path_received(struct mmc_path *path, uint64_t nbytes,
				     uint64_t time_ns)
{
	uint64_t time_us = time_ns / MMC_US_NS;
	uint64_t rate_bytes_per_s;

	if (time_us == 0 || nbytes > UINT64_MAX / 1000000)
		return;
	rate_bytes_per_s = mmc_max_u64(1, nbytes * 1000000 / time_us);
	if (path->measured)
		rate_bytes_per_s = mmc_rate_smooth(path->rate_bytes_per_s,
						   rate_bytes_per_s);
	path->rate_bytes_per_s = rate_bytes_per_s;
	path->measured = true;
}

/*
 * The bounds of the allowance for slow chunks. Receive queues in software are served in
 * turns, so chunks may be slower than the network is.
 */
#define MMC_PATH_LATE_MIN_NS MMC_MS_NS
#define MMC_PATH_LATE_MAX_NS (16 * MMC_MS_NS)

/*
 * Records that a chunk arrived by multicast that had been repaired already: it was only
 * slow, so multicast works. If multicast has been given up, it is tried again at once.
 */
static inline void mmc_path_late(struct mmc_path *path)
{
	path->nlate++;
	path->silent_chunks = 0;
	path->retry_ns = 0;
}

/*
 * Adapts the allowance for slow chunks after an operation, as in RFC 8985: it doubles
 * when chunks arrived that had been taken for lost; otherwise it slowly shrinks.
 */
static inline void mmc_path_settle(struct mmc_path *path)
{
	if (path->nlate > 0) {
		path->late_ns = mmc_min_u64(MMC_PATH_LATE_MAX_NS,
					    mmc_max_u64(MMC_PATH_LATE_MIN_NS,
							2 * path->late_ns));
		/* A sender that seemed silent was not. */
		path->ndeaf = 0;
	} else {
		path->late_ns -= path->late_ns / 64;
	}
	path->nlate = 0;
}

/* If some sender was not heard in this many operations in a row, it is no accident. */
#define MMC_PATH_DEAF_EPOCHS 3

/*
 * Multicast is given up when at least this many chunks of more than one operation were
 * expected and none arrived. One operation is not enough: a machine that stands still
 * for a while may hear all its chunks too late.
 */
#define MMC_PATH_SILENT_CHUNKS 6

/*
 * The bounds of the interval between tries of multicast, which doubles at each failure.
 */
#define MMC_PATH_RETRY_MIN_NS (50 * MMC_MS_NS)
#define MMC_PATH_RETRY_MAX_NS MMC_S_NS

/* Returns whether this rank wants nothing to be multicast at `now_ns`. */
static inline bool mmc_path_is_deaf(const struct mmc_path *path,
				    uint64_t now_ns)
{
	return path->unicast && now_ns < path->retry_ns;
}

/* Gives multicast up, for the first time or after a try, and sets when to try next. */
static inline void mmc_path_give_up(struct mmc_path *path, uint64_t now_ns)
{
	path->unicast = true;
	path->interval_ns = mmc_max_u64(MMC_PATH_RETRY_MIN_NS,
					mmc_min_u64(2 * path->interval_ns,
						    MMC_PATH_RETRY_MAX_NS));
	path->retry_ns = now_ns + path->interval_ns;
}

/* The multicast that one operation heard, from when all had entered until its end. */
struct mmc_reception {
	uint64_t begin_ns;
	uint64_t end_ns;
	uint32_t expected_chunks;
	uint32_t heard_chunks;
	/* A sender of which nothing arrived, or MMC_PEER_NONE. */
	uint32_t unheard;
	/* How long multicast may lag behind control and reads that lose nothing. */
	uint64_t lag_ns;
};

/*
 * How long control and reads may be ahead of multicast where they use connections that
 * lose nothing: a machine with few processors serves the queues one after the other.
 */
#define MMC_PATH_LAG_RELIABLE_NS MMC_PATH_RETRY_MIN_NS

/*
 * Adds up the chunks that were expected since the last one was heard. Returns whether
 * they are so many that multicast must have failed. They must come from more than one
 * operation, the latest of which began when the first had ended, and have been missing
 * for longer than multicast may lag.
 */
static inline bool mmc_path_add_silence(struct mmc_path *path,
					const struct mmc_reception *reception)
{
	if (reception->heard_chunks > 0) {
		path->silent_chunks = 0;
		return false;
	}
	if (path->silent_chunks == 0)
		path->silent_ns = reception->end_ns;
	path->silent_chunks += reception->expected_chunks;
	return path->silent_chunks >= MMC_PATH_SILENT_CHUNKS &&
	       reception->begin_ns >= path->silent_ns &&
	       reception->end_ns > path->silent_ns + reception->lag_ns;
}

/*
 * Counts the operations in a row that did not hear some sender. Returns whether they
 * are so many, and have gone on for so long, that multicast must have failed.
 */
static inline bool mmc_path_add_unheard(struct mmc_path *path,
					const struct mmc_reception *reception)
{
	if (reception->unheard == MMC_PEER_NONE) {
		path->ndeaf = 0;
		return false;
	}
	if (path->ndeaf++ == 0)
		path->deaf_ns = reception->end_ns;
	return path->ndeaf >= MMC_PATH_DEAF_EPOCHS &&
	       reception->end_ns >= path->deaf_ns + reception->lag_ns;
}

/*
 * Learns from what an operation has heard. A network may deliver multicast for a while
 * and then no more, for example when an IGMP querier goes away. Then multicast is given
 * up, and tried again ever more rarely. As long as chunks of every sender arrive, it is
 * not given up, however many are lost.
 */
static inline void mmc_path_heard(struct mmc_path *path,
				  const struct mmc_reception *reception)
{
	bool tried = path->unicast;
	bool failed;

	if (reception->expected_chunks == 0)
		return;
	failed = mmc_path_add_silence(path, reception);
	failed |= mmc_path_add_unheard(path, reception);
	path->unicast = tried &&
			(reception->heard_chunks == 0 || path->ndeaf > 0);
	if (path->unicast || failed) {
		path->unheard = reception->unheard;
		mmc_path_give_up(path, reception->end_ns);
	} else if (!tried) {
		/* A network that has failed is trusted again only by and by. */
		path->interval_ns -= path->interval_ns / 64;
	}
}

/* Returns how long `nbytes` take at the rate at which a rank receives. */
static inline uint64_t mmc_path_time_ns(const struct mmc_path *path,
					uint64_t nbytes)
{
	return mmc_rate_time_ns(path->rate_bytes_per_s, nbytes);
}

#endif
