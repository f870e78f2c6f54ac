/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/run_delay.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/clock.h"

/* Room for the three numbers of 64 bits in that file, with the blanks between them. */
#define TEXT_BYTES 64

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* has each thread's file closed when it ends */
static bool has_key;

/* The calling thread's file in /proc: 0: not opened yet; -1: there is none. */
static _Thread_local int file;

static void close_file(void *own_file)
{
	int *opened = own_file;

	close(*opened);
	*opened = 0;
}

static void make_key(void)
{
	has_key = pthread_key_create(&key, close_file) == 0;
}

static int open_file(void)
{
	int fd = -1;

	pthread_once(&once, make_key);
	if (has_key)
		fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	if (fd > 0)
		pthread_setspecific(key, &file);
	return fd > 0 ? fd : -1;
}

struct mmc_run_delay mmc_run_delay_look(void)
{
	struct mmc_run_delay look = { .thread = NULL };
	char text[TEXT_BYTES];
	ssize_t nbytes;
	char *end;

	if (file == 0)
		file = open_file();
	nbytes = file > 0 ? pread(file, text, sizeof(text) - 1, 0) : 0;
	if (nbytes <= 0)
		return look;
	text[nbytes] = '\0';
	/* The first number is the time on processors, the second the run delay. */
	strtoull(text, &end, 10);
	look.delay_ns = strtoull(end, NULL, 10);
	look.thread = &file;
	look.at_ns = mmc_clock_now_ns();
	return look;
}

bool mmc_run_delay_since(const struct mmc_run_delay *before,
			 struct mmc_run_delay *delay)
{
	if (before->thread != &file)
		return false;
	*delay = mmc_run_delay_look();
	delay->delay_ns -= before->delay_ns;
	delay->at_ns -= before->at_ns;
	return delay->thread == before->thread;
}
