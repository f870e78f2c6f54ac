/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first program of an emulated machine: it mounts the host's files, and then
 * becomes the script that the variable guest_init names.
 *
 * To mount them it loads the modules in /modules, whose names are 00, 01 and so on;
 * each comes after those that it needs. The emulator shares all files of the host under
 * the tag "root", read-only. Under the tag "work" it shares the folder that the guest
 * may write to, which the variable guest_work names.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOUNT_OPTIONS "trans=virtio,version=9p2000.L,msize=262144"

/*
 * If `status` is negative, says why on the console and exits, which ends the machine.
 */
static void check(int status, const char *what)
{
	if (status >= 0)
		return;
	fprintf(stderr, "initrd: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

/* Loads the modules one by one, until none has the next number. */
static void load_modules(void)
{
	for (int number = 0;; number++) {
		char path[32];

		snprintf(path, sizeof(path), "/modules/%02d", number);
		int file = open(path, O_RDONLY | O_CLOEXEC);

		if (file < 0)
			return;
		check((int)syscall(SYS_finit_module, file, "", 0), path);
		close(file);
	}
}

/* Mounts the host's files at /host, with the writable folder in its place there. */
static void mount_host(void)
{
	const char *work = getenv("guest_work");
	char path[4096];

	check(work ? 0 : -1, "guest_work");
	check(mkdir("/host", 0755), "/host");
	/* The guest cannot change these files, so it may cache what it has read. */
	check(mount("root", "/host", "9p", MS_RDONLY,
		    MOUNT_OPTIONS ",cache=loose"),
	      "root");
	snprintf(path, sizeof(path), "/host%s", work);
	check(mount("work", path, "9p", 0, MOUNT_OPTIONS ",cache=none"), path);
}

/* Makes /host the root of all files. */
static void move_root(void)
{
	check(chdir("/host"), "/host");
	check(mount(".", "/", NULL, MS_MOVE, NULL), "/");
	check(chroot("."), "chroot");
	check(chdir("/"), "/");
}

int main(void)
{
	const char *script = getenv("guest_init");

	check(script ? 0 : -1, "guest_init");
	load_modules();
	mount_host();
	move_root();
	execl(script, script, (char *)NULL);
	check(-1, script);
}
