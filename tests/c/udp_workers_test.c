/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers hand over all that their sockets receive, once, in order and without locks. */
#include "check.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "core/wire/header.h"
#include "drivers/udp/workers.h"
#include "support/bits.h"
#include "support/descriptor.h"
#include "support/prng.h"

#define NWORKERS 3
#define NDATAGRAMS 20000 /* that the threads exchange */
#define DATAGRAM_BYTES 40
#define TRAIN_DATAGRAMS 12
/* Few enough for the smallest receive buffer that Linux has by default. */
#define OUTSTANDING_MAX 100

#define TAG 77
#define PATIENCE_MS 5000

/* Workers, each with a socket of loopback that another one sends to. */
struct crew {
	struct mmc_udp_workers workers;
	int epoll_fd;
	int receivers[NWORKERS];
	int senders[NWORKERS];
	uint32_t nsent[NWORKERS];
	uint32_t ntaken[NWORKERS];
	_Atomic uint32_t noutstanding;
};

static void connect_pair(struct crew *crew, unsigned worker)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	int receiver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int one = 1, length = DATAGRAM_BYTES;

	CHECK_EQ(bind(receiver, (struct sockaddr *)&address, size), 0);
	CHECK_EQ(getsockname(receiver, (struct sockaddr *)&address, &size), 0);
	CHECK_EQ(connect(sender, (struct sockaddr *)&address, size), 0);
	CHECK_EQ(setsockopt(sender, IPPROTO_UDP, UDP_SEGMENT, &length,
			    sizeof(length)),
		 0);
	CHECK_EQ(setsockopt(receiver, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)),
		 0);
	crew->receivers[worker] = receiver;
	crew->senders[worker] = sender;
}

static void crew_open(struct crew *crew)
{
	memset(crew, 0, sizeof(*crew));
	crew->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	CHECK_EQ(mmc_udp_workers_open(&crew->workers, NWORKERS, crew->epoll_fd,
				      TAG),
		 0);
	for (unsigned i = 0; i < NWORKERS; i++) {
		connect_pair(crew, i);
		CHECK_EQ(mmc_udp_workers_assign(&crew->workers, i,
						crew->receivers[i]),
			 0);
	}
	CHECK_EQ(mmc_udp_workers_start(&crew->workers), 0);
}

static void crew_close(struct crew *crew)
{
	mmc_udp_workers_close(&crew->workers);
	for (unsigned i = 0; i < NWORKERS; i++) {
		close(crew->receivers[i]);
		close(crew->senders[i]);
	}
	close(crew->epoll_fd);
}

/* Sends a worker a train; each datagram begins with its number among the worker's. */
static void send_train(struct crew *crew, unsigned worker, uint32_t count)
{
	uint8_t bytes[TRAIN_DATAGRAMS * DATAGRAM_BYTES] = { 0 };
	size_t nbytes = (size_t)count * DATAGRAM_BYTES;

	for (uint32_t i = 0; i < count; i++)
		mmc_put_u32(bytes + (size_t)i * DATAGRAM_BYTES,
			    crew->nsent[worker]++);
	atomic_fetch_add(&crew->noutstanding, count);
	CHECK_EQ(send(crew->senders[worker], bytes, nbytes, 0), nbytes);
}

/* Takes one message of a worker's bank, whose datagrams must be the next ones. */
static void take_message(struct crew *crew, unsigned worker,
			 struct mmc_udp_bank *bank)
{
	struct mmc_udp_train train;
	uint32_t count;

	CHECK_EQ(bank->error, 0);
	if (!CHECK(mmc_udp_staging_look(&bank->staging, &train)))
		return;
	count = train.nbytes / DATAGRAM_BYTES;
	for (uint32_t i = 0; i < count; i++)
		CHECK_EQ(mmc_get_u32(train.bytes + (size_t)i * DATAGRAM_BYTES),
			 crew->ntaken[worker]++);
	mmc_udp_staging_take(&bank->staging, &train, train.nbytes);
	atomic_fetch_sub(&crew->noutstanding, count);
}

/* Takes up to `nmax` messages of each worker. Returns whether there were any. */
static bool take_messages(struct crew *crew, uint64_t nmax)
{
	bool any = false;

	mmc_udp_workers_reuse(&crew->workers);
	for (unsigned i = 0; i < NWORKERS; i++) {
		struct mmc_udp_worker *worker = &crew->workers.items[i];

		for (uint64_t n = 0; n < nmax; n++) {
			struct mmc_udp_bank *bank = mmc_udp_worker_bank(worker);

			if (bank == NULL)
				break;
			any = true;
			take_message(crew, i, bank);
			if (!mmc_udp_staging_holds(&bank->staging))
				mmc_udp_worker_handled(worker);
		}
	}
	return any;
}

/* Sleeps until the workers have news. Returns false if there were none in time. */
static bool await_news(const struct crew *crew)
{
	struct epoll_event event = { .data.u32 = 0 };

	return epoll_wait(crew->epoll_fd, &event, 1, PATIENCE_MS) == 1 &&
	       CHECK_EQ(event.data.u32, TAG);
}

static uint32_t total(const uint32_t *counts)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < NWORKERS; i++)
		sum += counts[i];
	return sum;
}

static void *send_all(void *argument)
{
	struct crew *crew = argument;
	struct mmc_prng prng = { .state = check_seed() };

	while (total(crew->nsent) < NDATAGRAMS) {
		uint32_t left = NDATAGRAMS - total(crew->nsent);
		uint32_t drawn =
			1 + (uint32_t)mmc_prng_below(&prng, TRAIN_DATAGRAMS);
		uint32_t count = mmc_min_u32(drawn, left);

		while (atomic_load(&crew->noutstanding) + count >
		       OUTSTANDING_MAX)
			sched_yield();
		send_train(crew, (unsigned)mmc_prng_below(&prng, NWORKERS),
			   count);
	}
	return NULL;
}

/* The owner takes much or little at a time, and sleeps whenever there is nothing. */
static void all_is_handed_over_once_and_in_order(void)
{
	struct mmc_prng prng = { .state = check_seed() + 1 };
	struct crew crew;
	pthread_t sender;

	crew_open(&crew);
	CHECK_EQ(pthread_create(&sender, NULL, send_all, &crew), 0);
	while (total(crew.ntaken) < NDATAGRAMS && check_failures == 0)
		if (!take_messages(&crew, 1 + mmc_prng_below(&prng, 5)) &&
		    !mmc_udp_workers_arm(&crew.workers))
			CHECK(await_news(&crew));
	CHECK_EQ(pthread_join(sender, NULL), 0);
	CHECK_EQ(total(crew.ntaken), NDATAGRAMS);
	CHECK(!mmc_udp_workers_hold(&crew.workers));
	crew_close(&crew);
}

/* Sends until all banks of worker 0 are full and more is waiting in its socket. */
static void fill_banks(struct crew *crew)
{
	struct mmc_udp_worker *worker = &crew->workers.items[0];
	uint32_t before = atomic_load(&worker->nfilled);

	for (uint32_t filled = 1; filled <= MMC_UDP_BANKS; filled++) {
		send_train(crew, 0, 1);
		while (atomic_load(&worker->nfilled) - before < filled)
			sched_yield();
	}
	send_train(crew, 0, 3);
	while (!atomic_load(&worker->waits))
		sched_yield();
}

/* Meanwhile the owner knows that it has not got all. */
static void full_banks_are_waited_for(void)
{
	struct crew crew;

	crew_open(&crew);
	for (unsigned round = 0; round < 3; round++) {
		fill_banks(&crew);
		CHECK(mmc_udp_workers_lag(&crew.workers));
		/* Another worker does not wait. */
		send_train(&crew, 1, 2);
		while (atomic_load(&crew.noutstanding) > 0)
			if (!take_messages(&crew, 2) &&
			    !mmc_udp_workers_arm(&crew.workers))
				CHECK(await_news(&crew));
		CHECK_EQ(total(crew.ntaken), total(crew.nsent));
		mmc_udp_workers_reuse(&crew.workers);
		while (mmc_udp_workers_lag(&crew.workers))
			sched_yield();
	}
	crew_close(&crew);
}

static void a_worker_that_waits_can_be_ended(void)
{
	struct crew crew;

	crew_open(&crew);
	fill_banks(&crew);
	crew_close(&crew);
}

/* Nobody is woken who is awake, and nobody falls asleep over what is there. */
static void only_an_armed_owner_is_woken(void)
{
	struct epoll_event event;
	struct crew crew;

	crew_open(&crew);
	send_train(&crew, 2, 1);
	while (!mmc_udp_workers_hold(&crew.workers))
		sched_yield();
	CHECK_EQ(epoll_wait(crew.epoll_fd, &event, 1, 0), 0);
	CHECK(mmc_udp_workers_arm(&crew.workers));
	CHECK(take_messages(&crew, 1));
	CHECK(!mmc_udp_workers_arm(&crew.workers));
	send_train(&crew, 2, 1);
	CHECK(await_news(&crew));
	CHECK(take_messages(&crew, 1));
	CHECK_EQ(epoll_wait(crew.epoll_fd, &event, 1, 0), 0);
	crew_close(&crew);
}

static void a_socket_that_fails_is_reported(void)
{
	struct mmc_udp_workers workers = { 0 };
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int no_socket = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	struct mmc_udp_bank *bank;

	CHECK_EQ(mmc_udp_workers_open(&workers, 1, epoll_fd, TAG), 0);
	CHECK_EQ(mmc_udp_workers_assign(&workers, 0, no_socket), 0);
	CHECK_EQ(mmc_udp_workers_start(&workers), 0);
	while (!mmc_udp_workers_hold(&workers))
		sched_yield();
	bank = mmc_udp_worker_bank(&workers.items[0]);
	CHECK_EQ(bank->error, ENOTSOCK);
	CHECK(!mmc_udp_staging_holds(&bank->staging));
	mmc_udp_workers_close(&workers);
	close(no_socket);
	close(epoll_fd);
}

CHECK_MAIN(CHECK_TEST(all_is_handed_over_once_and_in_order),
	   CHECK_TEST(full_banks_are_waited_for),
	   CHECK_TEST(a_worker_that_waits_can_be_ended),
	   CHECK_TEST(only_an_armed_owner_is_woken),
	   CHECK_TEST(a_socket_that_fails_is_reported))
