/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmc_thread_unbind() frees a thread bound to one core; one bound to several stays
 * bound.
 */
#include <mpimcast/mmc.h>
#include <sched.h>

#include "check.h"

#define CPUS_MAX 8192

/* Room for every CPU that a kernel may have. */
struct mask {
	cpu_set_t sets[CPUS_MAX / CPU_SETSIZE];
};

static struct mask current(void)
{
	struct mask mask = { 0 };

	CHECK_EQ(sched_getaffinity(0, sizeof(mask), mask.sets), 0);
	return mask;
}

static void bind_to(const struct mask *mask)
{
	CHECK_EQ(sched_setaffinity(0, sizeof(*mask), mask->sets), 0);
}

/* Returns the core of a CPU and its package as one number; -1 if they are unknown. */
static long core_of(size_t cpu)
{
	static const char *const names[] = { "physical_package_id", "core_id" };
	long core = 0;

	for (int i = 0; i < 2; i++) {
		char path[96];
		int number = -1;
		FILE *file;

		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%zu/topology/%s", cpu,
			 names[i]);
		file = fopen(path, "re");
		if (file == NULL || fscanf(file, "%d", &number) != 1)
			number = -1;
		if (file != NULL)
			fclose(file);
		if (number < 0)
			return -1;
		core = core << 16 | number;
	}
	return core;
}

static void one_core_is_left(void)
{
	const struct mask all = current();
	size_t cpu = 0;
	struct mask one = { 0 };
	struct mask after;
	struct mask both;

	while (!CPU_ISSET_S(cpu, sizeof(all), all.sets))
		cpu++;
	CPU_SET_S(cpu, sizeof(one), one.sets);
	bind_to(&one);
	mmc_thread_unbind();
	after = current();
	CPU_AND_S(sizeof(both), both.sets, after.sets, all.sets);
	CHECK(CPU_EQUAL_S(sizeof(both), both.sets, all.sets));
	bind_to(&all);
}

/* Binds to two CPUs of different cores; does nothing if the machine has no such two. */
static void several_cores_are_kept(void)
{
	const struct mask all = current();
	struct mask two = { 0 };
	struct mask after;
	long first = -1;

	for (size_t cpu = 0; cpu < CPUS_MAX; cpu++) {
		long core = core_of(cpu);

		if (!CPU_ISSET_S(cpu, sizeof(all), all.sets) || core < 0 ||
		    core == first)
			continue;
		CPU_SET_S(cpu, sizeof(two), two.sets);
		if (first >= 0)
			break;
		first = core;
	}
	if (CPU_COUNT_S(sizeof(two), two.sets) < 2)
		return;
	bind_to(&two);
	mmc_thread_unbind();
	after = current();
	CHECK(CPU_EQUAL_S(sizeof(two), two.sets, after.sets));
	bind_to(&all);
}

CHECK_MAIN(CHECK_TEST(one_core_is_left), CHECK_TEST(several_cores_are_kept))
