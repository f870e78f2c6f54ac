/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded, it gives receive buffers the size that a system with
 * net.core.rmem_max = 212992 gives: half of it may be asked for, and the kernel
 * doubles that.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HALF_BYTES = 106496 };

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	int half_bytes = HALF_BYTES;

	if (level == SOL_SOCKET && name == SO_RCVBUFFORCE) {
		errno = EPERM;
		return -1;
	}
	if (level == SOL_SOCKET && name == SO_RCVBUF &&
	    *(const int *)value > half_bytes)
		value = &half_bytes;
	return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}
