/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each side publishes its count and then looks whether the other sleeps; whoever is about
 * to sleep says so and then looks at the other's count. All four are sequentially
 * consistent, so at least one side sees what the other has done, and no wake-up is lost.
 */
#include "engine/threads/coder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/threads/threads.h"
#include "support/descriptor.h"
#include "support/error.h"
#include "support/futex.h"
#include "support/thread.h"

struct mmc_coder {
	pthread_t thread;
	int wake_fds[MMC_CODER_RESPONDER + 1]; /* by sleeper */
	/* Tasks so far, modulo 2^32: those that the holder has submitted ... */
	_Atomic uint32_t nsubmitted;
	/* ... those of them that have ended, or were cancelled in time ... */
	_Atomic uint32_t nended;
	/* ... and those of these that the holder has taken back. */
	uint32_t ntaken;
	_Atomic bool waits;	/* the coder, for a task */
	_Atomic bool awaited;	/* the holder waits for the end of a task */
	_Atomic unsigned armed; /* enum mmc_coder_sleeper */
	_Atomic bool stopping;
	struct mmc_coder_task tasks[MMC_CODER_TASKS];
};

/* ---- the coder's side ---------------------------------------------------- */

void mmc_coder_compute(const struct mmc_coder_task *task)
{
	if (task->loss.count > 0)
		mmc_code_mend(mmc_codec_choose(), &task->group, &task->loss);
	else
		mmc_code_encode(mmc_codec_choose(), &task->group, &task->rows);
}

/* Returns the next task; sleeps until there is one. NULL: the thread must stop. */
static struct mmc_coder_task *await_task(struct mmc_coder *coder)
{
	uint32_t nended = atomic_load(&coder->nended);
	uint32_t nsubmitted = atomic_load(&coder->nsubmitted);

	while (nsubmitted == nended && !atomic_load(&coder->stopping)) {
		atomic_store(&coder->waits, true);
		mmc_futex_wait(&coder->nsubmitted, nsubmitted, MMC_NEVER_NS);
		nsubmitted = atomic_load(&coder->nsubmitted);
	}
	if (atomic_load(&coder->stopping))
		return NULL;
	return &coder->tasks[nended % MMC_CODER_TASKS];
}

/* Hands a task back to the holder, and wakes it if it waits for that. */
static void hand_back(struct mmc_coder *coder, bool mended)
{
	unsigned sleeper = MMC_CODER_NOBODY;

	atomic_fetch_add(&coder->nended, 1);
	if (atomic_load(&coder->awaited))
		mmc_futex_wake(&coder->nended);
	if (mended && atomic_load(&coder->armed) != MMC_CODER_NOBODY)
		sleeper = atomic_exchange(&coder->armed, MMC_CODER_NOBODY);
	if (sleeper != MMC_CODER_NOBODY)
		mmc_descriptor_wake(coder->wake_fds[sleeper]);
}

/* The thread's function; `argument` is the coder. */
static void *code(void *argument)
{
	struct mmc_coder *coder = argument;
	struct mmc_coder_task *task;

	mmc_thread_unbind();
	while ((task = await_task(coder)) != NULL) {
		bool mine = !atomic_exchange(&task->claimed, true);

		if (mine)
			mmc_coder_compute(task);
		hand_back(coder, mine && task->loss.count > 0);
	}
	return NULL;
}

/* ---- the holder's side --------------------------------------------------- */

/* Says that the coder could not be started, and why. Frees what it has. */
static int refuse(struct mmc_coder *coder, int error)
{
	mmc_error_set("cannot start the coder thread: %s", strerror(error));
	if (coder->wake_fds[MMC_CODER_RESPONDER] >= 0)
		close(coder->wake_fds[MMC_CODER_RESPONDER]);
	free(coder);
	return -MMC_EIO;
}

int mmc_coder_start(struct mmc_engine *engine)
{
	/* An edge-triggered descriptor wakes a sleeper again without having been read. */
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct mmc_threads *threads = engine->threads;
	struct mmc_coder *coder;
	int error;

	if (engine->stepped || engine->coder != NULL)
		return 0;
	coder = calloc(1, sizeof(*coder));
	if (coder == NULL)
		return -MMC_ENOMEM;
	event.data.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	coder->wake_fds[MMC_CODER_LEADER] = threads->wake_fd;
	coder->wake_fds[MMC_CODER_RESPONDER] = event.data.fd;
	if (event.data.fd < 0 || epoll_ctl(threads->epoll_fd, EPOLL_CTL_ADD,
					   event.data.fd, &event) != 0)
		return refuse(coder, errno);
	error = mmc_thread_start(&coder->thread, code, coder);
	if (error != 0)
		return refuse(coder, error);
	engine->coder = coder;
	return 0;
}

void mmc_coder_stop(struct mmc_engine *engine)
{
	struct mmc_coder *coder = engine->coder;

	if (coder == NULL)
		return;
	atomic_store(&coder->stopping, true);
	/* The thread does not fall asleep over a count that has changed. */
	atomic_fetch_add(&coder->nsubmitted, 1);
	mmc_futex_wake(&coder->nsubmitted);
	pthread_join(coder->thread, NULL);
	close(coder->wake_fds[MMC_CODER_RESPONDER]);
	free(coder);
	engine->coder = NULL;
}

/* Returns how many tasks were submitted so far. */
static uint32_t count_submitted(const struct mmc_coder *coder)
{
	return atomic_load_explicit(&coder->nsubmitted, memory_order_relaxed);
}

struct mmc_coder_task *mmc_coder_next(struct mmc_coder *coder)
{
	uint32_t nsubmitted = count_submitted(coder);

	if (nsubmitted - coder->ntaken == MMC_CODER_TASKS)
		return NULL;
	return &coder->tasks[nsubmitted % MMC_CODER_TASKS];
}

void mmc_coder_submit(struct mmc_coder *coder)
{
	struct mmc_coder_task *task = mmc_coder_next(coder);

	atomic_store_explicit(&task->claimed, false, memory_order_relaxed);
	task->cancelled = false;
	atomic_fetch_add(&coder->nsubmitted, 1);
	if (atomic_load(&coder->waits) && atomic_exchange(&coder->waits, false))
		mmc_futex_wake(&coder->nsubmitted);
}

struct mmc_coder_task *mmc_coder_take(struct mmc_coder *coder)
{
	uint32_t nended = atomic_load(&coder->nended);

	/* A holder that calls this is awake, and need not be woken. */
	if (atomic_load_explicit(&coder->armed, memory_order_relaxed) !=
	    MMC_CODER_NOBODY)
		atomic_store_explicit(&coder->armed, MMC_CODER_NOBODY,
				      memory_order_relaxed);
	while (coder->ntaken != nended) {
		struct mmc_coder_task *task =
			&coder->tasks[coder->ntaken++ % MMC_CODER_TASKS];

		if (!task->cancelled)
			return task;
	}
	return NULL;
}

bool mmc_coder_arm(struct mmc_coder *coder, enum mmc_coder_sleeper sleeper)
{
	atomic_store(&coder->armed, sleeper);
	return atomic_load(&coder->nended) != coder->ntaken;
}

bool mmc_coder_has_ended(const struct mmc_coder *coder,
			 const struct mmc_coder_task *task)
{
	uint32_t place = (uint32_t)(task - coder->tasks);
	uint32_t nbefore = (place - coder->ntaken) % MMC_CODER_TASKS;

	return !task->cancelled &&
	       atomic_load(&coder->nended) - coder->ntaken > nbefore;
}

/* Waits until the task of this number has ended. */
static void await_end(struct mmc_coder *coder, uint32_t number)
{
	uint32_t nended;

	atomic_store(&coder->awaited, true);
	while ((nended = atomic_load(&coder->nended)) - coder->ntaken <=
	       number - coder->ntaken)
		mmc_futex_wait(&coder->nended, nended, MMC_NEVER_NS);
	atomic_store(&coder->awaited, false);
}

bool mmc_coder_await(struct mmc_coder *coder)
{
	if (coder->ntaken == count_submitted(coder))
		return false;
	await_end(coder, coder->ntaken);
	return true;
}

bool mmc_coder_cancel(struct mmc_coder_task *task)
{
	if (atomic_exchange(&task->claimed, true))
		return false;
	task->cancelled = true;
	return true;
}

void mmc_coder_forget(struct mmc_coder *coder,
		      const struct mmc_request *request)
{
	uint32_t nsubmitted = count_submitted(coder);

	for (uint32_t i = coder->ntaken; i != nsubmitted; i++) {
		struct mmc_coder_task *task =
			&coder->tasks[i % MMC_CODER_TASKS];

		if (task->request != request || task->cancelled ||
		    mmc_coder_cancel(task))
			continue;
		await_end(coder, i);
		task->cancelled = true;
	}
}
