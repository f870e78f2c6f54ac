/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of results in memory that ranks share, as Python has told them: where an
 * address lies does not change until Python registers or forgets such memory.
 */
#ifndef MMC_PYTHON_KEYS_H
#define MMC_PYTHON_KEYS_H

#include <Python.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MMC_PY_KEYS 16

struct mmc_py_keys {
	/* Python's register, whose attribute `known` is replaced at each change. */
	PyObject *memories;
	/* Returns the key of an address, 0 for private memory, -1 for others' memory. */
	PyObject *find;
	PyObject *known; /* for which the keys below hold */
	struct {
		const void *address;
		uint64_t key;
	} found[MMC_PY_KEYS];
	atomic_flag busy; /* a thread reads or writes all but the first two */
};

/*
 * Writes the key of the result at an address. Returns 1; 0 if the memory is shared with
 * others than the stream's members; or -1 with an exception.
 */
int mmc_py_find_key(struct mmc_py_keys *keys, const void *address,
		    uint64_t *key);

/* Finds the names of attributes; on error it returns -1 with an exception. */
int mmc_py_prepare_keys(void);

#endif
