/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts what an operation costs besides instructions: system calls, bytes copied,
 * allocations, datagrams. This program must be linked with --wrap (see
 * bench/counters.py).
 *
 * All ranks are teams of one engine, over UDP on loopback, which delivers a datagram
 * before the send returns. One thread moves them in turn, so the counts depend neither
 * on the scheduler nor on other load, but still on time. Therefore each count that is
 * printed is the least of many operations.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

#include "check.h"
#include "core/types.h"
#include "drivers/udp/peers.h"
#include "mpimcast/mmc.h"
#include "support/bits.h"

#define NRANKS 4
#define CHUNK_BYTES 1456 /* fits a link whose MTU is 1500 */
#define NOPS 40
#define NWARM 8
#define COPY_BYTES_MIN 256 /* smaller copies are bookkeeping */

static struct {
	_Atomic uint64_t system_calls;
	_Atomic uint64_t copied_bytes;
	_Atomic uint64_t allocations;
} spent;

#define WRAP(type, name, parameters, arguments, what, amount)                  \
	type __real_##name parameters;                                         \
	type __wrap_##name parameters;                                         \
	type __wrap_##name parameters                                          \
	{                                                                      \
		spent.what += (amount);                                        \
		return __real_##name arguments;                                \
	}

WRAP(int, sendmmsg, (int fd, struct mmsghdr *m, unsigned n, int flags),
     (fd, m, n, flags), system_calls, 1)
WRAP(int, recvmmsg,
     (int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t),
     (fd, m, n, flags, t), system_calls, 1)
WRAP(int, epoll_ctl, (int fd, int how, int which, struct epoll_event *e),
     (fd, how, which, e), system_calls, 1)
WRAP(int, epoll_wait, (int fd, struct epoll_event *e, int n, int timeout_ms),
     (fd, e, n, timeout_ms), system_calls, 1)
WRAP(int, ppoll,
     (struct pollfd * fds, nfds_t n, const struct timespec *t,
      const sigset_t *s),
     (fds, n, t, s), system_calls, 1)
WRAP(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), system_calls, 1)
WRAP(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n),
     system_calls, 1)
WRAP(int, timerfd_settime,
     (int fd, int flags, const struct itimerspec *t, struct itimerspec *old),
     (fd, flags, t, old), system_calls, 1)
WRAP(int, poll, (struct pollfd * fds, nfds_t n, int timeout_ms),
     (fds, n, timeout_ms), system_calls, 1)
WRAP(int, sched_yield, (void), (), system_calls, 1)
WRAP(int, pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), (c, m),
     system_calls, 1)
WRAP(int, pthread_cond_timedwait,
     (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *t),
     (c, m, t), system_calls, 1)
WRAP(void *, memcpy, (void *to, const void *from, size_t n), (to, from, n),
     copied_bytes, n >= COPY_BYTES_MIN ? n : 0)
WRAP(void *, memmove, (void *to, const void *from, size_t n), (to, from, n),
     copied_bytes, n >= COPY_BYTES_MIN ? n : 0)
WRAP(void *, malloc, (size_t n), (n), allocations, 1)
WRAP(void *, calloc, (size_t n, size_t nbytes), (n, nbytes), allocations, 1)
WRAP(void *, realloc, (void *old, size_t n), (old, n), allocations, 1)
WRAP(void *, aligned_alloc, (size_t align, size_t n), (align, n), allocations,
     1)

static struct {
	struct mmc_team *team;
	struct mmc_stream *stream;
	struct mmc_request *request;
	uint8_t *place;
} ranks[NRANKS];

static uint64_t block_bytes;
static uint32_t kind;

/* The costs of one operation of all ranks, in the order of `names`. */
enum { SYSTEM_CALLS, COPIED_BYTES, ALLOCATIONS, CONTROL, MULTICAST, NCOSTS };

static const char *const names[NCOSTS] = {
	"system_calls",	     "copied_bytes",	    "allocations",
	"control_datagrams", "multicast_datagrams",
};

static uint64_t counter(uint32_t rank, const char *name)
{
	uint64_t values[256];
	uint32_t i = 0;

	while (strcmp(mmc_counter_name(i), name) != 0)
		MMC_ASSERT(++i < mmc_counter_count());
	mmc_stream_counters(ranks[rank].stream, values);
	return values[i];
}

static void read_costs(uint64_t costs[NCOSTS])
{
	costs[SYSTEM_CALLS] = spent.system_calls;
	costs[COPIED_BYTES] = spent.copied_bytes;
	costs[ALLOCATIONS] = spent.allocations;
	costs[CONTROL] = costs[MULTICAST] = 0;
	for (uint32_t r = 0; r < NRANKS; r++) {
		costs[CONTROL] += counter(r, "tx_control_datagrams");
		costs[MULTICAST] += counter(r, "tx_multicast_datagrams");
	}
}

static void open_rank(struct mmc_engine *engine, uint32_t rank,
		      uint8_t *addresses)
{
	struct mmc_team_options options = {
		.rank = rank,
		.nranks = NRANKS,
		.group = 0xefc20100 + ((uint32_t)getpid() & 0xffff),
		.port = 20000 + (uint32_t)getpid() % 20000,
		.subgroups = 1,
		.chunk_bytes = CHUNK_BYTES,
		.checksum = MMC_CHECKSUM_HEADER,
		.channel = UINT64_C(99) << 32,
	};

	CHECK_EQ(mmc_udp_interface("", 1, &options.interface), 0);
	CHECK_EQ(mmc_team_create(engine, &options, &ranks[rank].team), 0);
	mmc_team_address(ranks[rank].team,
			 addresses + rank * MMC_UDP_ADDRESS_BYTES);
}

static void open_all(struct mmc_engine *engine)
{
	const struct mmc_stream_options options = {
		.channel = UINT64_C(1) << 16,
		.eager_bytes = 65536,
		.timeout_ns = 10 * MMC_S_NS,
	};
	uint8_t addresses[NRANKS * MMC_UDP_ADDRESS_BYTES];

	for (uint32_t r = 0; r < NRANKS; r++)
		open_rank(engine, r, addresses);
	for (uint32_t r = 0; r < NRANKS; r++) {
		CHECK_EQ(mmc_team_connect(ranks[r].team, addresses), 0);
		CHECK_EQ(mmc_stream_create(ranks[r].team, &options,
					   &ranks[r].stream),
			 0);
		ranks[r].place = calloc(NRANKS, block_bytes);
		memset(ranks[r].place + r * block_bytes, (int)r + 1,
		       block_bytes);
	}
}

static void close_all(struct mmc_engine *engine)
{
	for (uint32_t r = 0; r < NRANKS; r++) {
		mmc_stream_close(ranks[r].stream);
		mmc_team_close(ranks[r].team);
		free(ranks[r].place);
	}
	mmc_engine_destroy(engine);
}

static void start(uint32_t rank)
{
	const struct mmc_operation operation = {
		.kind = kind,
		.block_bytes = block_bytes,
		.recv = ranks[rank].place,
	};

	CHECK_EQ(mmc_start(ranks[rank].stream, &operation, 0,
			   &ranks[rank].request),
		 MMC_EAGAIN);
}

/*
 * The first wait makes progress for all ranks; later waits find their operations done.
 */
static void finish(uint32_t rank)
{
	CHECK_EQ(mmc_request_wait(ranks[rank].request, 10 * MMC_S_NS), 0);
	mmc_request_free(ranks[rank].request);
}

/* Checks all blocks; in a Bcast the root's alone, which is first in both kinds. */
static void check_data(void)
{
	uint64_t nblocks = kind == MMC_BCAST ? 1 : NRANKS;

	for (uint32_t r = 0; r < NRANKS; r++)
		for (uint64_t i = 0; i < nblocks * block_bytes; i += 97)
			CHECK_EQ(ranks[r].place[i], i / block_bytes + 1);
}

int main(int argc, char **argv)
{
	uint64_t least[NCOSTS], before[NCOSTS], after[NCOSTS];
	struct mmc_engine *engine;

	if (argc != 3 || mmc_engine_create(&engine) != 0)
		return 2;
	kind = strcmp(argv[1], "Bcast") == 0 ? MMC_BCAST : MMC_ALLGATHER;
	block_bytes = strtoull(argv[2], NULL, 10);
	memset(least, 255, sizeof(least));
	open_all(engine);
	for (unsigned i = 0; i < NOPS; i++) {
		read_costs(before);
		for (uint32_t r = 0; r < NRANKS; r++)
			start(r);
		for (uint32_t r = 0; r < NRANKS; r++)
			finish(r);
		read_costs(after);
		for (unsigned c = 0; i >= NWARM && c < NCOSTS; c++)
			least[c] = mmc_min_u64(least[c], after[c] - before[c]);
	}
	check_data();
	close_all(engine);
	for (unsigned c = 0; c < NCOSTS; c++)
		printf("%s %.3f\n", names[c], (double)least[c] / NRANKS);
	return check_failures != 0;
}
