/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter whose harts, but for the first, and whose device are threads of this process,
 * and the network from which the device receives what a test sends.
 */
#ifndef MMC_TESTS_HARTS_H
#define MMC_TESTS_HARTS_H

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "../firmware/adapter/device.h"
#include "check.h"
#include "firmware/hart.h"
#include "firmware/machine.h"
#include "offload/ring.h"

#define NHARTS 3 /* with the first one */
#define NRANKS 3
#define CHUNK_BYTES 64
#define BLOCK_CHUNKS 200
#define TAIL_BYTES 10
#define BLOCK_BYTES ((BLOCK_CHUNKS - 1) * CHUNK_BYTES + TAIL_BYTES)
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)
#define NSLOTS (MMC_NIC_SLOTS / NHARTS) /* of each queue */
#define SLOT_BYTES 128
#define CHANNEL (UINT64_C(77) << 16)
#define BATCH 32

/* Who sleeps for so long has missed a ring. */
#define PATIENCE_S 20

/* All of an adapter's memory. */
static struct memory {
	uint8_t program[64];
	struct mmc_nic nic;
	struct mmc_nic_buffer buffer;
	struct mmc_nic_block blocks[NRANKS];
	uint8_t slots[MMC_NIC_SLOTS][SLOT_BYTES];
	uint8_t result[NRANKS][BLOCK_BYTES]; /* the host's */
} memory;

#define OFFSET(field) ((uint64_t)((uint8_t *)&memory.field - memory.program))

static struct device device;
static struct mmc_hart harts[NHARTS];
static sem_t bells[NHARTS];
static sem_t device_bell;
static bool ending; /* read by all threads: use atomics */

/* ---- the network --------------------------------------------------------- */

/*
 * What arrives, a ring: the test writes entries and then adds them to `nsent`; the device's
 * thread reads them and adds them to `narrived`. Both are atomic.
 */
#define TRAFFIC 4096
static struct mmc_header traffic[TRAFFIC];
static uint32_t nsent, narrived;
static uint8_t datagrams[BATCH][SLOT_BYTES];

static uint32_t bytes_of(uint32_t chunk)
{
	return chunk % BLOCK_CHUNKS == BLOCK_CHUNKS - 1 ? TAIL_BYTES
							: CHUNK_BYTES;
}

/* Every byte of a payload; of each epoch, and each chunk, it is another one. */
static uint8_t content_of(uint32_t epoch, uint32_t chunk)
{
	return (uint8_t)(epoch * 31 + chunk * 7 + 1);
}

static int poll_network(struct mmc_endpoint *endpoint, struct mmc_event *events,
			unsigned nmax)
{
	uint32_t nready = __atomic_load_n(&nsent, __ATOMIC_ACQUIRE);
	uint32_t begin = __atomic_load_n(&narrived, __ATOMIC_RELAXED);
	unsigned n = 0;

	(void)endpoint;
	for (; begin + n != nready && n < nmax && n < BATCH; n++) {
		struct mmc_header header = traffic[(begin + n) % TRAFFIC];
		uint32_t chunk = header.index & MMC_INDEX_MASK;
		uint32_t nbytes = MMC_HEADER_BYTES + bytes_of(chunk);

		mmc_header_encode(datagrams[n], &header, nbytes,
				  MMC_CHECKSUM_HEADER);
		memset(datagrams[n] + MMC_HEADER_BYTES,
		       content_of(header.epoch, chunk),
		       nbytes - MMC_HEADER_BYTES);
		events[n] = (struct mmc_event){
			.kind = MMC_EVENT_DATAGRAM,
			.bytes = datagrams[n],
			.nbytes = nbytes,
			.source = chunk / BLOCK_CHUNKS,
		};
	}
	__atomic_store_n(&narrived, begin + n, __ATOMIC_RELEASE);
	return (int)n;
}

static const struct mmc_driver driver = { .poll = poll_network };
static struct mmc_endpoint endpoint = { .driver = &driver };

/* ---- threads ------------------------------------------------------------- */

void mmc_machine_ring(void)
{
	sem_post(&device_bell);
}

void mmc_machine_interrupt(uint32_t hart)
{
	sem_post(&bells[hart]);
}

/* Sleeps until there is a ring, and takes all that there are. */
static void sleep_on(sem_t *bell)
{
	struct timespec until;
	int rv;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	do {
		rv = sem_timedwait(bell, &until);
	} while (rv != 0 && errno == EINTR);
	if (rv != 0)
		exit(1); /* no ring may be lost */
	while (sem_trywait(bell) == 0)
		;
}

static bool is_ending(void)
{
	return __atomic_load_n(&ending, __ATOMIC_ACQUIRE);
}

static void *run_hart(void *argument)
{
	struct mmc_hart *hart = argument;

	while (!is_ending())
		if (!mmc_hart_step(hart) && !mmc_hart_arm(hart))
			sleep_on(&bells[hart->number]);
	return NULL;
}

/* Passes the device's rings on, as the first hart does. */
static void relay(void)
{
	for (uint32_t i = 1; i < NHARTS; i++)
		if (__atomic_exchange_n(&memory.nic.queue[i].rung, 0,
					__ATOMIC_SEQ_CST) != 0)
			mmc_machine_interrupt(i);
}

static void *run_device(void *argument)
{
	while (!is_ending()) {
		bool busy = device_progress(&device);

		device_must_ring(&device); /* the first hart never sleeps */
		if (!busy && !device_arm(&device) &&
		    narrived == __atomic_load_n(&nsent, __ATOMIC_ACQUIRE))
			sleep_on(&device_bell);
	}
	return argument;
}

#endif
