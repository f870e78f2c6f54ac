/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/error.h"
#include "support/fork.h"
#include "support/futex.h"

/* A sleeper with requests in flight looks up this often, lest a member has died. */
#define LOOK_NS (50 * MMC_MS_NS)

/* A sleep that only a bell ends. */
#define LONG_NS (3600 * MMC_S_NS)

static _Atomic uint64_t drawn;

/*
 * Returns a number that no other process has; 0 if the kernel gives none. Its low 16
 * bits are the generation, by which a child of fork() knows that it must draw its own.
 * Which of several threads draws first decides for all.
 */
static uint64_t this_process(void)
{
	uint16_t generation = (uint16_t)(mmc_fork_generation() + 1);
	uint64_t known = atomic_load(&drawn);
	uint64_t number;

	if ((uint16_t)known == generation)
		return known;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return 0;
	number = number << 16 | generation;
	if (atomic_compare_exchange_strong(&drawn, &known, number))
		return number;
	return known;
}

static struct flock lock_of(uint32_t member, short type)
{
	return (struct flock){ .l_type = type,
			       .l_whence = SEEK_SET,
			       .l_start = member,
			       .l_len = 1 };
}

static int fail(const char *what)
{
	mmc_error_set("%s: %s", what, strerror(errno));
	return -MMC_EIO;
}

/* Checks that nobody can cut the segment, whose reader would then die of SIGBUS. */
static int check_file(int fd, uint64_t nbytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	if (fstat(fd, &stat) != 0)
		return fail("the node's segment cannot be read");
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || stat.st_size < 0 ||
	    (uint64_t)stat.st_size < nbytes) {
		mmc_error_set("the node's segment is too short, or not sealed");
		return -MMC_EINVAL;
	}
	return 0;
}

/* Takes this member's lock and fills in its part of the segment's head. */
static int enter(struct mmc_node *node)
{
	struct mmc_node_bell *bell = &node->head->bells[node->member];
	struct flock lock = lock_of(node->member, F_WRLCK);
	uint64_t process = this_process();
	uint32_t none = 0;

	if (process == 0)
		return fail("the kernel gives no random number");
	if (!atomic_compare_exchange_strong(&node->head->nmembers, &none,
					    node->nmembers) &&
	    none != node->nmembers) {
		mmc_error_set("the node has %u members, not %u", none,
			      node->nmembers);
		return -MMC_EINVAL;
	}
	if (fcntl(node->fd, F_SETLK, &lock) != 0)
		return fail("the node's segment cannot be locked");
	atomic_store(&bell->process_at, (uintptr_t)&drawn);
	atomic_store(&bell->pid, getpid());
	atomic_store(&bell->process, process);
	return 0;
}

int mmc_node_open(int fd, uint64_t nbytes, uint32_t member, uint32_t nmembers,
		  struct mmc_node **node)
{
	struct mmc_node *made;
	void *mapped;
	int rv;

	*node = NULL;
	if (nmembers == 0 || nmembers > MMC_NODE_MEMBERS_MAX ||
	    member >= nmembers || nbytes < MMC_NODE_HEAD_BYTES)
		return -MMC_EINVAL;
	rv = check_file(fd, nbytes);
	if (rv != 0)
		return rv;
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return -MMC_ENOMEM;
	mapped = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED) {
		free(made);
		return fail("the node's segment cannot be mapped");
	}
	*made = (struct mmc_node){
		.head = mapped,
		.nbytes = nbytes,
		.fd = fd,
		.member = member,
		.nmembers = nmembers,
		.forks = mmc_fork_generation(),
	};
	/* Where the kernel gives no huge pages to shared memory, small ones do. */
	madvise(mapped, nbytes, MADV_HUGEPAGE);
	rv = enter(made);
	if (rv != 0) {
		munmap(mapped, nbytes);
		free(made);
		return rv;
	}
	*node = made;
	return 0;
}

void mmc_node_close(struct mmc_node *node)
{
	munmap(node->head, node->nbytes);
	close(node->fd);
	free(node);
}

bool mmc_node_is_forked(const struct mmc_node *node)
{
	return mmc_fork_generation() != node->forks;
}

bool mmc_node_is_alive(const struct mmc_node *node, uint32_t member)
{
	struct flock lock = lock_of(member, F_WRLCK);

	/* The kernel does not tell a process of its own locks. */
	if (atomic_load(&node->head->bells[member].process) == this_process())
		return true;
	return fcntl(node->fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void mmc_node_arm(struct mmc_node *node)
{
	atomic_store(&node->head->bells[node->member].armed, 1);
}

/* Rings a bell, armed or not, and wakes the member that sleeps on it. */
static void ring(struct mmc_node_bell *bell)
{
	atomic_fetch_add(&bell->nrings, 1);
	mmc_futex_wake(&bell->nrings);
}

void mmc_node_ring(struct mmc_node *node, uint32_t member)
{
	struct mmc_node_bell *bell = &node->head->bells[member];

	if (atomic_load(&bell->armed) != 0 &&
	    atomic_exchange(&bell->armed, 0) != 0)
		ring(bell);
}

void mmc_node_watch(struct mmc_node *node)
{
	if (atomic_fetch_add(&node->nwatched, 1) > 0)
		return;
	mmc_node_ring(node, node->member);
	mmc_node_arm(node);
}

int mmc_node_await(struct mmc_node *node, uint32_t *nrings)
{
	struct mmc_node_bell *bell = &node->head->bells[node->member];
	bool watches;

	if (mmc_node_is_forked(node))
		return -MMC_EFORKED;
	do {
		watches = atomic_load(&node->nwatched) > 0;
		mmc_node_arm(node);
		mmc_futex_wait(&bell->nrings, *nrings,
			       watches ? LOOK_NS : LONG_NS);
	} while (atomic_load(&bell->nrings) == *nrings && !watches);
	/* A ring while the caller looks at its requests must not be lost. */
	*nrings = atomic_load(&bell->nrings);
	mmc_node_arm(node);
	return 0;
}

void mmc_node_rouse(struct mmc_node *node)
{
	if (!mmc_node_is_forked(node))
		ring(&node->head->bells[node->member]);
}
