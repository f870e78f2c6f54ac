/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs and librdmacm, opened at run time, so that one build of this library runs
 * on machines with and without them. The functions below are looked up by name. Those
 * that post requests and poll are inline in the libraries' headers and need no look-up.
 */
#ifndef MMC_DRIVERS_VERBS_DL_H
#define MMC_DRIVERS_VERBS_DL_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/*
 * The prefix, name and version of each function. The version matters: some functions
 * also exist in an older one.
 */
#define MMC_IBVERBS_SYMBOLS(X)                                                 \
	X(ibv, fork_init, "IBVERBS_1.1")                                       \
	X(ibv, get_device_list, "IBVERBS_1.1")                                 \
	X(ibv, free_device_list, "IBVERBS_1.1")                                \
	X(ibv, get_device_name, "IBVERBS_1.1")                                 \
	X(ibv, open_device, "IBVERBS_1.1")                                     \
	X(ibv, close_device, "IBVERBS_1.1")                                    \
	X(ibv, query_device, "IBVERBS_1.1")                                    \
	X(ibv, query_port, "IBVERBS_1.1")                                      \
	X(_ibv, query_gid_ex, "IBVERBS_1.11")                                  \
	X(ibv, alloc_pd, "IBVERBS_1.1")                                        \
	X(ibv, dealloc_pd, "IBVERBS_1.1")                                      \
	X(ibv, reg_mr, "IBVERBS_1.1")                                          \
	X(ibv, dereg_mr, "IBVERBS_1.1")                                        \
	X(ibv, create_comp_channel, "IBVERBS_1.0")                             \
	X(ibv, destroy_comp_channel, "IBVERBS_1.0")                            \
	X(ibv, create_cq, "IBVERBS_1.1")                                       \
	X(ibv, destroy_cq, "IBVERBS_1.1")                                      \
	X(ibv, get_cq_event, "IBVERBS_1.1")                                    \
	X(ibv, ack_cq_events, "IBVERBS_1.1")                                   \
	X(ibv, create_srq, "IBVERBS_1.1")                                      \
	X(ibv, destroy_srq, "IBVERBS_1.1")                                     \
	X(ibv, create_qp, "IBVERBS_1.1")                                       \
	X(ibv, modify_qp, "IBVERBS_1.1")                                       \
	X(ibv, destroy_qp, "IBVERBS_1.1")                                      \
	X(ibv, create_ah, "IBVERBS_1.1")                                       \
	X(ibv, destroy_ah, "IBVERBS_1.1")                                      \
	X(ibv, attach_mcast, "IBVERBS_1.1")                                    \
	X(ibv, detach_mcast, "IBVERBS_1.1")                                    \
	X(ibv, get_async_event, "IBVERBS_1.1")                                 \
	X(ibv, ack_async_event, "IBVERBS_1.1")                                 \
	X(ibv, event_type_str, "IBVERBS_1.1")                                  \
	X(ibv, wc_status_str, "IBVERBS_1.1")

#define MMC_RDMACM_SYMBOLS(X)                                                  \
	X(rdma, create_event_channel, "RDMACM_1.0")                            \
	X(rdma, destroy_event_channel, "RDMACM_1.0")                           \
	X(rdma, create_id, "RDMACM_1.0")                                       \
	X(rdma, destroy_id, "RDMACM_1.0")                                      \
	X(rdma, bind_addr, "RDMACM_1.0")                                       \
	X(rdma, join_multicast, "RDMACM_1.0")                                  \
	X(rdma, leave_multicast, "RDMACM_1.0")                                 \
	X(rdma, get_cm_event, "RDMACM_1.0")                                    \
	X(rdma, ack_cm_event, "RDMACM_1.0")

/* The members have no prefix, since some of the full names are also macros. */
#define MMC_DL_MEMBER(prefix, name, version) __typeof__(&prefix##_##name) name;
struct mmc_ibv {
	MMC_IBVERBS_SYMBOLS(MMC_DL_MEMBER)
};
struct mmc_cm {
	MMC_RDMACM_SYMBOLS(MMC_DL_MEMBER)
};
#undef MMC_DL_MEMBER

/* The functions; valid once mmc_verbs_load() has returned 0. */
extern struct mmc_ibv mmc_ibv;
extern struct mmc_cm mmc_cm;

/*
 * Opens both libraries in the first call; they stay open. Returns 0, or -MMC_ENODEV
 * with the reason set if a library or a function in it is missing. Any thread may call
 * this.
 */
int mmc_verbs_load(void);

#endif
