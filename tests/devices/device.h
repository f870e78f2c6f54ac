/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device in software behind the interface of a driver: libcuda's or, built with HIP
 * defined, libamdhip64's. It differs from a mock in what it does to programs that are
 * wrong:
 *
 * - The host cannot touch the memory of the device: its addresses are mapped without any
 *   rights, and the device's own copies go through a second mapping.
 * - A stream is a thread that does one task after the other, each after a random delay.
 *   So whoever does not wait for a task meets bytes that are not there yet.
 * - Copies between pinned memory and the device happen in the stream, in two halves with
 *   a delay between. From other memory of the host a copy has read all before the call
 *   returns, and to such memory it has ended by then, as CUDA says.
 * - Calls without a current context, unknown handles, and copies beyond an allocation
 *   are refused.
 *
 * The default stream is a stream like any other: it does not wait for others. The
 * environment variable DEVICE_SEED sets the delays, and DEVICE_DELAY_US the longest.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORIES_MAX = 4096 };

/* Memory of the device, or of the host that is pinned. */
struct memory {
	uint8_t *begin;	 /* NULL: unused */
	uint8_t *shadow; /* where the device itself finds it */
	size_t nbytes;
	bool on_device;
	bool pooled; /* of a pool, which no context owns */
};

/* Maps memory of the device, or pins some of the host; returns NULL if it cannot. */
struct memory *memory_create(size_t nbytes, bool on_device);

/* Returns the memory that has `nbytes` at an address, all of them; NULL: none has. */
struct memory *memory_find(const void *address, size_t nbytes);

void memory_destroy(struct memory *memory);

/* What a stream has to do. */
struct task {
	struct task *next;
	void (*run)(struct task *task);
	void *to;
	const void *from;
	size_t nbytes;
	uint64_t
		until; /* of an event: how often it has been recorded by then */
	void (*call)(void *argument);
	void *argument;
	bool frees_from;
};

struct stream;

struct stream *stream_create(void);

/* Puts a copy of a task behind all that the stream has to do. */
void stream_put(struct stream *stream, struct task task);

/* Waits until the stream has done all that it had to do. */
void stream_drain(struct stream *stream);

bool stream_is_idle(struct stream *stream);

/* Ends the stream once it has done all that it had to do. */
void stream_destroy(struct stream *stream);

/* Sleeps for a random time. */
void delay(void);

struct event;

struct event *event_create(void);
void event_record(struct event *event, struct stream *stream);
void event_await(struct event *event, struct stream *stream);

/* Frees the event once no task has to do with it any more. */
void event_destroy(struct event *event);

#endif
