/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first program of an emulated machine: it lets Debian's kernel see the host's
 * files, and then becomes the script that guest_init names.
 *
 * The modules to load are the files /modules/00, 01, ..., each after those that it
 * needs. The host shares a folder under the tag "root", read-only, and another under
 * the tag "work", which is mounted where guest_work says.
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

#define HOST "trans=virtio,version=9p2000.L,msize=262144"

/* Exits on an error, which ends the machine; the console shows the reason. */
static void check(int status, const char *what)
{
	if (status >= 0)
		return;
	fprintf(stderr, "initrd: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

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

static void mount_host(void)
{
	const char *work = getenv("guest_work");
	char path[4096];

	check(work ? 0 : -1, "guest_work");
	check(mkdir("/host", 0755), "/host");
	/* Only the host changes these files, so what was read of them is cached. */
	check(mount("root", "/host", "9p", MS_RDONLY, HOST ",cache=loose"),
	      "root");
	snprintf(path, sizeof(path), "/host%s", work);
	check(mount("work", path, "9p", 0, HOST ",cache=none"), path);
}

static void become_host(void)
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
	become_host();
	execl(script, script, (char *)NULL);
	check(-1, script);
}
