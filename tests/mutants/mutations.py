# SPDX-License-Identifier: BSD-3-Clause
"""Edits of proxies and firmware, each of which takes away one check or ordering.

The test program that an edit names must fail with it. So each check has a test that
misses it.

Two orderings are not in the list, since no test was found that misses them. The server
copies the tables of an Allgatherv before it checks them; without that, they could be
changed only within the microsecond before the engine makes its own copy. And it writes
a completion before it publishes it; the host would have to read within nanoseconds.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """An edit of one file of ffi/, in one place or several.

    Attributes
    ----------
    what : str
        What it takes away, in words.
    path : str
        The file, below ffi/.
    old, new : str
        The text, which occurs once in the file, and what replaces it.
    program : str
        The program of tests/c that fails then.
    runs : int
        In how many runs it fails at least once, if what is missing is seldom noticed.
    more : tuple
        Further pairs of `old` and `new`, if one edit alone changes nothing.
    """

    what: str
    path: str
    old: str
    new: str
    program: str
    runs: int = 1
    more: tuple[tuple[str, str], ...] = ()


RING = "offload/ring.h"
SERVER = "server/server.c"
CALLS = "server/calls.c"
MEETING = "offload/meeting.c"
ATTACH = "drivers/remote/attach.c"
PROXY = "proxy/proxy.c"
REQUESTS = "engine/remote/requests.c"
LANDING = "engine/remote/landing.c"
SHARING = "engine/remote/sharing.c"
DISPLAY = "server/display.c"
HART = "firmware/hart.c"
TAG = "firmware/tag.h"

MUTATIONS = (
    Mutation(
        "a fence between what is shown and what is seen",
        RING,
        "__atomic_store_n(word, value, __ATOMIC_SEQ_CST)",
        "__atomic_store_n(word, value, __ATOMIC_RELEASE)",
        "ring_test",
        runs=5,
    ),
    Mutation(
        "who is rung for is disarmed",
        RING,
        "__atomic_exchange_n(&ring->armed, 0, __ATOMIC_RELAXED) != 0",
        "__atomic_load_n(&ring->armed, __ATOMIC_RELAXED) != 0",
        "ring_test",
    ),
    Mutation(
        "who arms itself looks once more",
        SERVER,
        "	return mmc_ring_count(&bridge->commands) != 0 ||\n",
        "	return\n",
        "server_test",
    ),
    Mutation(
        "a result lies in its region",
        SERVER,
        "place->offset_bytes > mapped->nbytes ||\n"
        "	    nbytes > mapped->nbytes - place->offset_bytes)",
        "place->offset_bytes > mapped->nbytes)",
        "server_test",
    ),
    Mutation(
        "the sizes of blocks have a sum",
        SERVER,
        "		if (__builtin_add_overflow(operation->blocks_bytes[r],\n"
        "					   operation->offsets_bytes[r], &end))\n"
        "			return false;",
        "		end = operation->blocks_bytes[r] +\n"
        "		      operation->offsets_bytes[r];",
        "server_test",
    ),
    Mutation(
        "a number in flight is not used again",
        SERVER,
        "	    command->request >= MMC_OFFLOAD_REQUESTS ||\n"
        "	    server->served[command->request].request != NULL)",
        "	    command->request >= MMC_OFFLOAD_REQUESTS)",
        "server_test",
    ),
    Mutation(
        "a number is one of the table's",
        SERVER,
        "	    command->request >= MMC_OFFLOAD_REQUESTS ||\n",
        "",
        "server_test",
    ),
    Mutation(
        "a ring has no more entries than it can hold",
        SERVER,
        "	if (ncommands > MMC_OFFLOAD_COMMANDS)",
        "	if (false)",
        "server_test",
    ),
    Mutation(
        "a bridge is of this version",
        SERVER,
        "	    bridge->version != MMC_OFFLOAD_VERSION)",
        "	    false)",
        "server_test",
    ),
    Mutation(
        "a region that is in use stays",
        CALLS,
        "	if (server->mapped[number].nused > 0) {",
        "	if (false) {",
        "server_calls_test",
    ),
    Mutation(
        "a secret is wiped",
        CALLS,
        "	memset(call->body, 0, MMC_SECRET_BYTES);\n",
        "",
        "server_calls_test",
    ),
    Mutation(
        "arguments lie in the mailbox",
        CALLS,
        "	    call->argument_bytes > call->server->mailbox_bytes) {",
        "	    false) {",
        "server_calls_test",
    ),
    Mutation(
        "the other process belongs to the same user",
        MEETING,
        "== geteuid()",
        "!= UINT32_MAX",
        "meeting_test",
    ),
    Mutation(
        "a file is sealed against being cut",
        MEETING,
        "(seals & F_SEAL_SHRINK) &&",
        "",
        "meeting_test",
    ),
    Mutation(
        "a proxy refuses ranks of another version",
        PROXY,
        "	       other.version == MMC_OFFLOAD_VERSION;",
        "	       true;",
        "proxy_greeting_test",
    ),
    Mutation(
        "a rank refuses proxies of another version",
        ATTACH,
        "	    greeting->version == MMC_OFFLOAD_VERSION)",
        "	    true)",
        "proxy_greeting_test",
    ),
    Mutation(
        "a proxy refuses ranks of another user",
        PROXY,
        "	if (!mmc_meeting_is_own(fd))",
        "	if (false)",
        "proxy_greeting_test",
    ),
    Mutation(
        "a rank refuses proxies of another user",
        ATTACH,
        "	if (!mmc_meeting_is_own(link->socket)) {",
        "	if (false) {",
        "proxy_greeting_test",
    ),
    Mutation(
        "a proxy leaves the groups of ranks that have gone",
        PROXY,
        "mmc_udp_linger_sweep(now_ns) - now_ns",
        "MMC_NEVER_NS",
        "proxy_test",
    ),
    Mutation(
        "a proxy detaches a rank once",
        PROXY,
        "	epoll_ctl(proxy->epoll_fd, EPOLL_CTL_DEL,",
        "	epoll_ctl(-1, EPOLL_CTL_DEL,",
        "proxy_test",
    ),
    Mutation(
        "an operation begins once it is ready",
        REQUESTS,
        "(request->operation.unready ||\n",
        "(false ||\n",
        "requests_test",
    ),
    Mutation(
        "what has arrived in a bounce buffer is copied out",
        SHARING,
        "		copy_blocks(request, true);",
        "		copy_blocks(request, false);",
        "proxy_test",
    ),
    Mutation(
        "bits are displayed in a region of the host",
        DISPLAY,
        "display->shown != NULL || bits == NULL ||",
        "display->shown != NULL ||",
        "display_test",
    ),
    Mutation(
        "bits are displayed where words may lie",
        DISPLAY,
        "	    command->bits.offset_bytes % sizeof(uint64_t) != 0)",
        "	    false)",
        "display_test",
    ),
    Mutation(
        "as many bits are displayed as there are chunks",
        DISPLAY,
        "nbits != display->nchunks",
        "false",
        "display_test",
    ),
    Mutation(
        "memory with a display is not unmapped",
        DISPLAY,
        "	server->mapped[display->region].nused++;\n",
        "",
        "display_test",
        more=(("	server->mapped[display->region].nused--;\n", ""),),
    ),
    Mutation(
        "a host that sleeps is woken for what is displayed",
        DISPLAY,
        "mmc_ring_must_ring(&bridge->completions)",
        "false",
        "display_test",
    ),
    Mutation(
        "only bits of chunks count",
        LANDING,
        "			~present->words[i] & valid_bits(present, i);",
        "			~present->words[i];",
        "remote_landing_test",
    ),
    Mutation(
        "no chunk lands twice",
        LANDING,
        "			~present->words[i] & valid_bits(present, i);",
        "			valid_bits(present, i);",
        "remote_landing_test",
    ),
    Mutation(
        "chunks are copied before they are present",
        LANDING,
        "	if (request->bounced)\n		copy_run(request, run);\n",
        "",
        "remote_landing_test",
    ),
    Mutation(
        "a rank leaves after what it has started",
        REQUESTS,
        "	if (!stream->leaves || stream->queue != NULL || stream->left)",
        "	if (!stream->leaves || stream->left)",
        "requests_test",
        more=(
            (
                "team->posted->count == MMC_OFFLOAD_REQUESTS))\n			return;",
                "team->posted->count == MMC_OFFLOAD_REQUESTS))\n			break;",
            ),
        ),
    ),
    Mutation(
        "only a number in flight has ended",
        REQUESTS,
        "completion->request < MMC_OFFLOAD_REQUESTS\n",
        "completion->request <= UINT32_MAX\n",
        "requests_test",
    ),
    Mutation(
        "the responder watches the bell of a runner",
        "engine/progress.c",
        "		if (mmc_team_is_remote(team) && team->posted->count > 0)\n"
        "			return true;\n",
        "",
        "requests_test",
    ),
    Mutation(
        "a hart lets go of a buffer when all is placed",
        HART,
        "if (hart->uses || hart->nplacing == 0)\n",
        "if (hart->uses || hart->nplacing < UINT32_MAX)\n",
        "hart_test",
    ),
    Mutation(
        "a hart tells nothing of a buffer that is deregistered",
        HART,
        "	if (!hart->uses)\n		hart->run.count = 0;\n",
        "",
        "hart_test",
    ),
    Mutation(
        "arrivals in an earlier buffer do not count",
        HART,
        "		   told->cookie == hart->buffer.cookie)",
        "		   told->cookie > 0)",
        "hart_test",
    ),
    Mutation(
        "a hart places no chunk twice",
        HART,
        "mmc_bitmap_test_and_set(&hart->claimed, header.index))",
        "hart->claimed.words == NULL)",
        "hart_test",
    ),
    Mutation(
        "runs leave room for all slots",
        HART,
        "(hart->uses && !has_room(hart))",
        "(hart->uses && mmc_ring_room(&hart->told, MMC_HART_EVENTS) == 0)",
        "hart_test",
        more=(("static bool has_room(", "static inline bool has_room("),),
    ),
    Mutation(
        "a hart that sleeps is woken for a slot",
        HART,
        "	mmc_ring_produce(ring);\n	wake(hart);\n",
        "	mmc_ring_produce(ring);\n",
        "hart_test",
    ),
    Mutation(
        "a hart that sleeps is woken to let go",
        HART,
        "void mmc_hart_deregister(struct mmc_hart *hart)\n{\n"
        "	mmc_ring_show(&hart->nchanges, hart->nchanges + 1);\n"
        "	wake(hart);\n",
        "void mmc_hart_deregister(struct mmc_hart *hart)\n{\n"
        "	mmc_ring_show(&hart->nchanges, hart->nchanges + 1);\n",
        "hart_test",
    ),
    Mutation(
        "a hart takes in slots of its own alone",
        HART,
        "told->slot - hart->first_slot < hart->nslots &&",
        "told->slot < MMC_NIC_SLOTS &&",
        "hart_test",
    ),
    Mutation(
        "only a chunk of the epoch is written to the buffer",
        TAG,
        "header->epoch != buffer->epoch ||",
        "false ||",
        "tag_test",
    ),
    Mutation(
        "nothing is written behind a block",
        TAG,
        "at >= block->nbytes",
        "at > block->nbytes",
        "tag_test",
    ),
)
