/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* ---- memory --------------------------------------------------------------- */

static struct memory memories[MEMORIES_MAX];

/* Maps `nbytes` twice: without rights, and for the device. Returns whether it could. */
static bool map(struct memory *memory)
{
	int fd = memfd_create("device", MFD_CLOEXEC);
	bool fits = fd >= 0 && ftruncate(fd, (off_t)memory->nbytes) == 0;

	if (fits) {
		memory->begin = mmap(NULL, memory->nbytes, PROT_NONE,
				     MAP_SHARED, fd, 0);
		memory->shadow = mmap(NULL, memory->nbytes,
				      PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				      0);
	}
	if (fd >= 0)
		close(fd);
	return fits && memory->begin != MAP_FAILED &&
	       memory->shadow != MAP_FAILED;
}

struct memory *memory_create(size_t nbytes, bool on_device)
{
	struct memory made = { .nbytes = nbytes, .on_device = on_device };
	struct memory *found = NULL;

	if (nbytes == 0)
		return NULL;
	if (!on_device)
		made.begin = made.shadow =
			aligned_alloc(4096, (nbytes + 4095) / 4096 * 4096);
	else if (!map(&made))
		return NULL;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MEMORIES_MAX && found == NULL; i++)
		if (memories[i].begin == NULL)
			found = &memories[i];
	if (found != NULL)
		*found = made;
	pthread_mutex_unlock(&lock);
	return found;
}

struct memory *memory_find(const void *address, size_t nbytes)
{
	const uint8_t *begin = address;
	struct memory *found = NULL;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < MEMORIES_MAX && found == NULL; i++) {
		struct memory *each = &memories[i];

		if (each->begin != NULL && begin >= each->begin &&
		    begin + nbytes <= each->begin + each->nbytes &&
		    begin < each->begin + each->nbytes)
			found = each;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void memory_destroy(struct memory *memory)
{
	struct memory old;

	pthread_mutex_lock(&lock);
	old = *memory;
	memory->begin = NULL;
	pthread_mutex_unlock(&lock);
	if (!old.on_device) {
		free(old.begin);
		return;
	}
	munmap(old.begin, old.nbytes);
	munmap(old.shadow, old.nbytes);
}

/* ---- streams -------------------------------------------------------------- */

struct stream {
	pthread_t thread;
	pthread_cond_t given; /* something to do, or the end */
	struct task *first, **end;
	bool busy, ends;
};

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

/* A step of xorshift64, seeded once. */
static uint64_t draw(void)
{
	static uint64_t state;
	uint64_t value;

	pthread_mutex_lock(&lock);
	if (state == 0)
		state = setting("DEVICE_SEED", 1) * UINT64_C(2654435761) + 1;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	value = state;
	pthread_mutex_unlock(&lock);
	return value;
}

void delay(void)
{
	uint64_t most_us = setting("DEVICE_DELAY_US", 1000);
	uint64_t us = most_us == 0 ? 0 : draw() % most_us;
	struct timespec pause = { .tv_sec = (time_t)(us / 1000000),
				  .tv_nsec = (long)(us % 1000000 * 1000) };

	nanosleep(&pause, NULL);
}

static void *work(void *argument)
{
	struct stream *stream = argument;

	pthread_mutex_lock(&lock);
	for (;;) {
		struct task *task = stream->first;

		stream->busy = task != NULL;
		if (task == NULL) {
			pthread_cond_broadcast(&changed);
			if (stream->ends)
				break;
			pthread_cond_wait(&stream->given, &lock);
			continue;
		}
		stream->first = task->next;
		if (stream->first == NULL)
			stream->end = &stream->first;
		pthread_mutex_unlock(&lock);
		delay();
		task->run(task);
		free(task);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

struct stream *stream_create(void)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	stream->end = &stream->first;
	pthread_cond_init(&stream->given, NULL);
	pthread_create(&stream->thread, NULL, work, stream);
	return stream;
}

void stream_put(struct stream *stream, struct task task)
{
	struct task *made = malloc(sizeof(*made));

	*made = task;
	made->next = NULL;
	pthread_mutex_lock(&lock);
	*stream->end = made;
	stream->end = &made->next;
	stream->busy = true;
	pthread_cond_signal(&stream->given);
	pthread_mutex_unlock(&lock);
}

bool stream_is_idle(struct stream *stream)
{
	bool idle;

	pthread_mutex_lock(&lock);
	idle = !stream->busy;
	pthread_mutex_unlock(&lock);
	return idle;
}

void stream_drain(struct stream *stream)
{
	pthread_mutex_lock(&lock);
	while (stream->busy)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

void stream_destroy(struct stream *stream)
{
	pthread_mutex_lock(&lock);
	stream->ends = true;
	pthread_cond_signal(&stream->given);
	pthread_mutex_unlock(&lock);
	pthread_join(stream->thread, NULL);
	pthread_cond_destroy(&stream->given);
	free(stream);
}

/* ---- events --------------------------------------------------------------- */

struct event {
	uint64_t nasked; /* how often it was to be recorded */
	uint64_t ndone;
	uint32_t nusers; /* tasks that have to do with it, and its owner */
};

/* Records that a task, or the owner, has no more to do with an event. */
static void leave(struct event *event)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = --event->nusers == 0;
	pthread_mutex_unlock(&lock);
	if (last)
		free(event);
}

static void run_record(struct task *task)
{
	struct event *event = task->to;

	pthread_mutex_lock(&lock);
	event->ndone = task->until;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	leave(event);
}

static void run_await(struct task *task)
{
	struct event *event = task->to;

	pthread_mutex_lock(&lock);
	while (event->ndone < task->until)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	leave(event);
}

struct event *event_create(void)
{
	struct event *event = calloc(1, sizeof(*event));

	event->nusers = 1;
	return event;
}

void event_record(struct event *event, struct stream *stream)
{
	struct task task = { .run = run_record, .to = event };

	pthread_mutex_lock(&lock);
	task.until = ++event->nasked;
	event->nusers++;
	pthread_mutex_unlock(&lock);
	stream_put(stream, task);
}

void event_await(struct event *event, struct stream *stream)
{
	struct task task = { .run = run_await, .to = event };

	pthread_mutex_lock(&lock);
	task.until = event->nasked;
	event->nusers++;
	pthread_mutex_unlock(&lock);
	stream_put(stream, task);
}

void event_destroy(struct event *event)
{
	leave(event);
}
