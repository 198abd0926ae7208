/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Written by build.sh of what Rust's compiler made of pxcp.rs (header.awk): do not edit. */
#pragma once
#include <linux/types.h>

struct Link {
	__u64 state[96];
};
_Static_assert(sizeof(struct Link) == 768, "as Rust has it");

struct LinkConfig_xcp {
	__u64 capacity;
	__u32 alpha;
	__u32 beta;
	__u32 gamma;
	__u64 min_interval;
	__u64 max_interval;
	__u64 initial_interval;
	__u64 allowed_queue;
	__u8 capture;
	__u8 thesis;
	__u8 overdraw;
	__u8 bound_headers;
	__u8 spread;
	__u8 average_queue;
	__u8 remember_grants;
};
_Static_assert(sizeof(struct LinkConfig_xcp) == 64, "as Rust has it");

struct LinkConfig {
	struct LinkConfig_xcp xcp;
	__u32 k;
	__u32 r_max;
	__u32 weight_cap;
	__u32 counted_over;
};
_Static_assert(sizeof(struct LinkConfig) == 80, "as Rust has it");

struct Header {
	__u32 x;
	__u32 rtt;
	__s32 delta;
	__s32 reverse;
};
_Static_assert(sizeof(struct Header) == 16, "as Rust has it");

struct Report {
	__u64 intervals;
	__u64 input;
	__s64 feedback;
	__u64 interval;
	__u64 persistent_queue;
	__u64 bounded;
};
_Static_assert(sizeof(struct Report) == 48, "as Rust has it");

/* Hidden: static subprograms to the verifier, which then accepts map pointers and spin locks. */
#define LAW extern __attribute__((visibility("hidden")))

LAW __u64 law_link_init(struct Link *link, struct LinkConfig *config, __u64 phase, __u64 queue_phase);
LAW __u64 law_link_next_deadline(struct Link *link);
LAW __u64 law_link_on_arrival(struct Link *link, __u64 now, struct Header *header, __u64 size);
LAW __u64 law_link_on_deadline(struct Link *link, __u64 now, __u64 backlog);
LAW __u64 law_link_on_departure(struct Link *link, __u64 now, struct Header *header, __u64 size, __u64 backlog);
LAW __u64 law_link_on_other_departure(struct Link *link, __u64 now, __u64 backlog);
LAW __u64 law_link_report(struct Link *link, struct Report *report);
LAW __u64 law_link_set_capacity(struct Link *link, __u64 capacity);
