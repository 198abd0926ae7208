/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Written by build.sh of what Rust's compiler made of vcp.rs (header.awk): do not edit. */
#pragma once
#include <linux/types.h>

struct Chains {
	__u32 word;
	__u32 waiting;
};
_Static_assert(sizeof(struct Chains) == 8, "as Rust has it");

struct Link {
	__u64 state[20];
};
_Static_assert(sizeof(struct Link) == 160, "as Rust has it");

struct LinkConfig {
	__u64 capacity;
	__u64 interval;
	__u64 sample;
	__u32 gamma;
	__u32 kq;
	__u32 queue_weight;
	__u32 rest[7];
};
_Static_assert(sizeof(struct LinkConfig) == 64, "as Rust has it");

struct Report {
	__u64 intervals;
	__u32 load;
	__u16 level;
	__u8 zone;
};
_Static_assert(sizeof(struct Report) == 16, "as Rust has it");

struct ChainsReader {
	__u32 heard;
};
_Static_assert(sizeof(struct ChainsReader) == 4, "as Rust has it");

struct Sender {
	__u64 state[18];
};
_Static_assert(sizeof(struct Sender) == 144, "as Rust has it");

struct SenderConfig {
	__u32 alpha;
	__u32 beta;
	__u32 xi;
	__u32 loss;
	__u32 exponent_max;
	__u32 interval;
	__u32 rtt_max;
	__u8 hold;
	__u8 pacing;
	__u8 smooth;
	__u8 cut;
};
_Static_assert(sizeof(struct SenderConfig) == 32, "as Rust has it");

struct Reply {
	__u32 word;
	__u8 byte;
};
_Static_assert(sizeof(struct Reply) == 8, "as Rust has it");

struct Ack {
	__u64 acked;
	__u64 flight;
	__u64 awnd;
	__u64 rtt;
	__u64 srtt;
	struct Reply reply;
	__u8 is_duplicate;
	__u8 in_recovery;
	__u8 is_window_limited;
	__u8 is_late;
	__u8 is_repairing;
};
_Static_assert(sizeof(struct Ack) == 56, "as Rust has it");

/* Hidden: static subprograms to the verifier, which then accepts map pointers and spin locks. */
#define LAW extern __attribute__((visibility("hidden")))

LAW __u64 law_chains_on_data(struct Chains *chains, __u64 code, __u64 index, __u64 packets);
LAW __u64 law_link_init(struct Link *link, struct LinkConfig *config, __u64 phase, __u64 queue_phase);
LAW __u64 law_link_mark(struct Link *link, __u64 index, __u64 found, __u32 *record);
LAW __u64 law_link_next_deadline(struct Link *link);
LAW __u64 law_link_on_arrival(struct Link *link, __u64 now, __u64 size);
LAW __u64 law_link_on_deadline(struct Link *link, __u64 now, __u64 backlog);
LAW __u64 law_link_raise(struct Link *link, __u64 code);
LAW __u64 law_link_report(struct Link *link, struct Report *report);
LAW __u64 law_link_set_capacity(struct Link *link, __u64 capacity);
LAW __u64 law_reader_on_ack(struct ChainsReader *reader, __u64 word);
LAW __u64 law_sender_downgrades(struct Sender *sender);
LAW __u64 law_sender_init(struct Sender *sender, __u64 mss, __u64 initial_window);
LAW __u64 law_sender_next_place(struct Sender *sender, struct SenderConfig *config, __u64 now, __u64 srtt);
LAW __u64 law_sender_on_ack(struct Sender *sender, struct SenderConfig *config, __u64 now, struct Ack *ack, __u64 part);
LAW __u64 law_sender_on_loss(struct Sender *sender, struct SenderConfig *config, __u64 now, __u64 flight);
LAW __u64 law_sender_on_timeout(struct Sender *sender, struct SenderConfig *config, __u64 now, __u64 flight, __u64 is_first);
LAW __u64 law_sender_pacing_rate(struct Sender *sender, struct SenderConfig *config, __u64 srtt);
LAW __u64 law_sender_settle(struct Sender *sender);
LAW __u64 law_sender_window(struct Sender *sender);
LAW __u64 law_sender_zone(struct Sender *sender);
