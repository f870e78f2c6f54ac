/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to preload, under which sockets get receive buffers no larger than on a
 * system with net.core.rmem_max = 212992, the kernel's default. The kernel doubles
 * what a program asks for, so that asking for half of it, 106496 bytes, gives as much.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HALF_BYTES = 106496 };

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	int half_bytes = HALF_BYTES;

	/* As for a process without CAP_NET_ADMIN, which may not exceed the limit. */
	if (level == SOL_SOCKET && name == SO_RCVBUFFORCE) {
		errno = EPERM;
		return -1;
	}
	if (level == SOL_SOCKET && name == SO_RCVBUF &&
	    *(const int *)value > half_bytes)
		value = &half_bytes;
	return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}
