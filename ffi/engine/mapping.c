/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/error.h"

void *mmc_mapping_make(int fd, size_t nbytes)
{
	void *bytes =
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (bytes == MAP_FAILED) {
		mmc_error_set("mmap: %s", strerror(errno));
		return NULL;
	}
	/* Where the kernel gives no huge pages to shared memory, small ones do. */
	madvise(bytes, nbytes, MADV_HUGEPAGE);
	return bytes;
}

int mmc_mapping_keep(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void mmc_mapping_end(void *bytes, size_t nbytes, int fd)
{
	munmap(bytes, nbytes);
	if (fd >= 0)
		close(fd);
}
