/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring loses no entry, and no ring of its bell, whatever two threads do at once. */
#include "offload/ring.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "check.h"
#include "support/descriptor.h"

#define NENTRIES 8 /* of the ring */
#define NROUNDS 200000

/* A consumer that is not woken for so long has missed a ring. */
#define PATIENCE_MS 5000

static struct mmc_offload_ring ring;
static uint32_t entries[NENTRIES];
static int bell_fd;

/* Counters that are about to wrap count as others do. */
static void begin_ring(uint32_t nbefore)
{
	ring = (struct mmc_offload_ring){ .nproduced = nbefore,
					  .nconsumed = nbefore };
}

static void room_and_count(void)
{
	begin_ring(UINT32_MAX - 2);
	for (uint32_t i = 0; i < NENTRIES; i++) {
		CHECK_EQ(mmc_ring_room(&ring, NENTRIES), NENTRIES - i);
		CHECK_EQ(mmc_ring_count(&ring), i);
		mmc_ring_produce(&ring);
	}
	CHECK_EQ(mmc_ring_room(&ring, NENTRIES), 0);
	for (uint32_t i = 0; i < NENTRIES; i++) {
		mmc_ring_consume(&ring);
		CHECK_EQ(mmc_ring_count(&ring), NENTRIES - i - 1);
	}
}

/* Only an armed consumer is rung for, and only once. */
static void rung_for_once(void)
{
	begin_ring(0);
	CHECK(!mmc_ring_must_ring(&ring));
	mmc_ring_arm(&ring);
	CHECK(mmc_ring_must_ring(&ring));
	CHECK(!mmc_ring_must_ring(&ring));
}

/*
 * Puts consecutive numbers in the ring, and rings for a consumer that sleeps. In most
 * rounds the ring is empty before, and the delay is such that the consumer goes to sleep
 * at that very moment.
 */
static void *produce(void *argument)
{
	for (uint32_t i = 0; i < NROUNDS; i++) {
		uint32_t room = i % 16 < 3 ? 1 : NENTRIES;

		while (mmc_ring_room(&ring, NENTRIES) < room)
			;
		for (uint32_t n = i % 61; n > 0; n--)
			__asm__ volatile("" ::: "memory");
		entries[ring.nproduced % NENTRIES] = i;
		mmc_ring_produce(&ring);
		if (mmc_ring_must_ring(&ring))
			mmc_descriptor_wake(bell_fd);
	}
	return argument;
}

/* Sleeps until something is in the ring. Returns whether it was woken for that. */
static bool doze(void)
{
	struct pollfd polled = { .fd = bell_fd, .events = POLLIN };

	mmc_ring_arm(&ring);
	if (mmc_ring_count(&ring) > 0)
		return true;
	if (!CHECK_EQ(poll(&polled, 1, PATIENCE_MS), 1))
		return false;
	mmc_descriptor_drain(bell_fd);
	return true;
}

static void no_ring_is_lost(void)
{
	pthread_t producer;
	uint32_t nseen = 0;

	begin_ring(UINT32_MAX - NROUNDS / 2);
	bell_fd = eventfd(0, EFD_NONBLOCK);
	CHECK_EQ(pthread_create(&producer, NULL, produce, NULL), 0);
	while (nseen < NROUNDS) {
		if (mmc_ring_count(&ring) == 0) {
			if (!doze())
				break;
			continue;
		}
		CHECK_EQ(entries[ring.nconsumed % NENTRIES], nseen);
		mmc_ring_consume(&ring);
		nseen++;
	}
	if (nseen < NROUNDS)
		exit(1); /* the producer waits for room for ever */
	pthread_join(producer, NULL);
	close(bell_fd);
}

CHECK_MAIN(CHECK_TEST(room_and_count), CHECK_TEST(rung_for_once),
	   CHECK_TEST(no_ring_is_lost))
