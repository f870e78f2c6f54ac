/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/protect/secret.h"

#include <errno.h>
#include <mpimcast/errors.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "support/error.h"

struct mmc_secret {
	uint8_t bytes[MMC_SECRET_BYTES];
	bool spent;
};

void *mmc_secret_allocate(size_t nbytes)
{
	void *memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* Each of these may be refused; the memory is of use without it, too. */
	madvise(memory, nbytes, MADV_DONTDUMP);
	madvise(memory, nbytes, MADV_WIPEONFORK);
	mlock(memory, nbytes);
	return memory;
}

void mmc_secret_release(void *memory, size_t nbytes)
{
	if (memory == NULL)
		return;
	explicit_bzero(memory, nbytes);
	munmap(memory, nbytes);
}

int mmc_secret_create(struct mmc_secret **secret)
{
	*secret = mmc_secret_allocate(sizeof(**secret));
	return *secret == NULL ? -MMC_ENOMEM : 0;
}

int mmc_secret_draw(struct mmc_secret *secret)
{
	ssize_t drawn;

	do {
		drawn = getrandom(secret->bytes, sizeof(secret->bytes), 0);
	} while (drawn < 0 && errno == EINTR);
	if (drawn == sizeof(secret->bytes))
		return 0;
	mmc_error_set("the system gives no random bits: %s", strerror(errno));
	return -MMC_EIO;
}

uint8_t *mmc_secret_bytes(struct mmc_secret *secret)
{
	return secret->bytes;
}

bool mmc_secret_spend(struct mmc_secret *secret, uint8_t *bytes)
{
	if (secret->spent)
		return false;
	memcpy(bytes, secret->bytes, sizeof(secret->bytes));
	explicit_bzero(secret->bytes, sizeof(secret->bytes));
	secret->spent = true;
	return true;
}

void mmc_secret_free(struct mmc_secret *secret)
{
	mmc_secret_release(secret, sizeof(*secret));
}
