/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of libcuda, or with HIP defined of libamdhip64, that mpimcast and the
 * tests call, have the types and numbers of the real ones.
 */
#ifndef DRIVER_H
#define DRIVER_H

#include "device.h"

enum {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400,
	NOT_READY = 600,
};

#ifdef HIP
typedef void *device_pointer;
#define FUNCTION(cuda, hip) hip
#else
typedef unsigned long long device_pointer;
#define FUNCTION(cuda, hip) cuda
#endif

typedef void *handle;

/*
 * Returns the error with which a call has to end: the one set by device_break(), or
 * INVALID_CONTEXT if this thread has no current context; or SUCCESS.
 */
int judge(void);

/* Lets all functions that do something with the device fail from now on. */
void device_break(int error);

#endif
