/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver's functions for streams, events and copies. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* ---- streams -------------------------------------------------------------- */

static struct stream *default_stream;
static pthread_once_t default_once = PTHREAD_ONCE_INIT;

static void create_default(void)
{
	default_stream = stream_create();
}

/* Returns the stream of a handle: NULL, 1 and 2 stand for the default stream. */
static struct stream *stream_of(handle stream)
{
	if ((uintptr_t)stream > 2)
		return stream;
	pthread_once(&default_once, create_default);
	return default_stream;
}

int FUNCTION(cuStreamCreate, hipStreamCreateWithFlags)(handle *stream,
						       unsigned flags)
{
	int error = judge();

	if (flags > 1)
		return INVALID_VALUE;
	if (error == SUCCESS)
		*stream = stream_create();
	return error;
}

int FUNCTION(cuStreamDestroy_v2, hipStreamDestroy)(handle stream)
{
	if ((uintptr_t)stream <= 2)
		return INVALID_HANDLE;
	stream_destroy(stream);
	return SUCCESS;
}

int FUNCTION(cuStreamSynchronize, hipStreamSynchronize)(handle stream)
{
	int error = judge();

	if (error == SUCCESS)
		stream_drain(stream_of(stream));
	return error;
}

int FUNCTION(cuStreamQuery, hipStreamQuery)(handle stream)
{
	int error = judge();

	if (error != SUCCESS)
		return error;
	return stream_is_idle(stream_of(stream)) ? SUCCESS : NOT_READY;
}

int FUNCTION(cuEventCreate, hipEventCreateWithFlags)(handle *event,
						     unsigned flags)
{
	int error = judge();

	(void)flags;
	if (error == SUCCESS)
		*event = event_create();
	return error;
}

int FUNCTION(cuEventDestroy_v2, hipEventDestroy)(handle event)
{
	event_destroy(event);
	return SUCCESS;
}

int FUNCTION(cuEventRecord, hipEventRecord)(handle event, handle stream)
{
	int error = judge();

	if (error == SUCCESS)
		event_record(event, stream_of(stream));
	return error;
}

int FUNCTION(cuStreamWaitEvent, hipStreamWaitEvent)(handle stream, handle event,
						    unsigned flags)
{
	int error = judge();

	if (flags != 0)
		return INVALID_VALUE;
	if (error == SUCCESS)
		event_await(event, stream_of(stream));
	return error;
}

static void run_call(struct task *task)
{
	task->call(task->argument);
}

int FUNCTION(cuLaunchHostFunc, hipLaunchHostFunc)(handle stream,
						  void (*function)(void *),
						  void *argument)
{
	int error = judge();

	if (error == SUCCESS)
		stream_put(stream_of(stream), (struct task){
						      .run = run_call,
						      .call = function,
						      .argument = argument,
					      });
	return error;
}

/* ---- copies --------------------------------------------------------------- */

static void run_copy(struct task *task)
{
	size_t half = task->nbytes / 2;

	memcpy(task->to, task->from, half);
	delay();
	memcpy((uint8_t *)task->to + half, (const uint8_t *)task->from + half,
	       task->nbytes - half);
	if (task->frees_from)
		free((void *)(uintptr_t)task->from);
}

/* Returns where the device itself finds memory of its own; NULL if it is not. */
static uint8_t *shadow(const void *address, size_t nbytes)
{
	const struct memory *memory = memory_find(address, nbytes);

	if (memory == NULL || !memory->on_device)
		return NULL;
	return memory->shadow + ((const uint8_t *)address - memory->begin);
}

int FUNCTION(cuMemcpyDtoHAsync_v2,
	     hipMemcpyDtoHAsync)(void *to, device_pointer from, size_t nbytes,
				 handle stream)
{
	struct task task = {
		.run = run_copy,
		.to = to,
		.from = shadow((void *)(uintptr_t)from, nbytes),
		.nbytes = nbytes,
	};
	int error = judge();

	if (error != SUCCESS)
		return error;
	if (task.from == NULL)
		return INVALID_VALUE;
	stream_put(stream_of(stream), task);
	if (memory_find(to, nbytes) == NULL)
		stream_drain(stream_of(stream));
	return SUCCESS;
}

int FUNCTION(cuMemcpyHtoDAsync_v2,
	     hipMemcpyHtoDAsync)(device_pointer to, const void *from,
				 size_t nbytes, handle stream)
{
	struct task task = {
		.run = run_copy,
		.to = shadow((void *)(uintptr_t)to, nbytes),
		.from = from,
		.nbytes = nbytes,
	};
	int error = judge();

	if (error != SUCCESS)
		return error;
	if (task.to == NULL)
		return INVALID_VALUE;
	if (memory_find(from, nbytes) == NULL) {
		void *copy = malloc(nbytes);

		memcpy(copy, from, nbytes);
		task.from = copy;
		task.frees_from = true;
	}
	stream_put(stream_of(stream), task);
	return SUCCESS;
}
