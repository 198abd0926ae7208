/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Written by build.sh of what Rust's compiler made of laws.rs (header.awk): do not edit. */
#pragma once
#include <linux/types.h>

struct Echo {
	__u64 window;
	__u32 own;
	__u8 epoch;
};
_Static_assert(sizeof(struct Echo) == 16, "as Rust has it");

struct SenderConfig {
	__u64 desired_rate;
	__u32 request;
	__u32 loss;
	__u32 rate_source;
	__u32 aging;
	__u32 price;
	__u8 clamp;
	__u8 pacing;
	__u8 ns2;
	__u8 safety_net;
};
_Static_assert(sizeof(struct SenderConfig) == 32, "as Rust has it");

struct Came {
	__u32 rtt;
	__s32 delta;
	__u32 told;
	__u32 packets;
	__u64 mss;
	__u64 awnd;
};
_Static_assert(sizeof(struct Came) == 32, "as Rust has it");

struct Sender {
	__u64 state[25];
};
_Static_assert(sizeof(struct Sender) == 200, "as Rust has it");

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

struct Send {
	__u64 size;
	__u64 srtt;
	__u64 awnd;
	__u64 backlog;
	__u64 inflation;
	__u8 is_window_limited;
};
_Static_assert(sizeof(struct Send) == 48, "as Rust has it");

struct Header {
	__u32 x;
	__u32 rtt;
	__s32 delta;
	__s32 reverse;
};
_Static_assert(sizeof(struct Header) == 16, "as Rust has it");

/* Hidden: static subprograms to the verifier, which then accepts map pointers and spin locks. */
#define LAW extern __attribute__((visibility("hidden")))

LAW __u64 law_echo_init(struct Echo *echo, __u64 mss);
LAW __u64 law_echo_on_ack(struct Echo *echo);
LAW __u64 law_echo_on_data(struct Echo *echo, struct SenderConfig *config, struct Came *came);
LAW __u64 law_sender_epoch(struct Sender *sender);
LAW __u64 law_sender_init(struct Sender *sender, struct SenderConfig *config, __u64 mss, __u64 initial_window);
LAW __u64 law_sender_lies(struct Sender *sender);
LAW __u64 law_sender_on_ack(struct Sender *sender, struct SenderConfig *config, __u64 now, struct Ack *ack, __u64 told);
LAW __u64 law_sender_on_loss(struct Sender *sender, struct SenderConfig *config, __u64 now, __u64 flight);
LAW __u64 law_sender_on_send(struct Sender *sender, struct SenderConfig *config, __u64 now, struct Send *send, struct Header *header);
LAW __u64 law_sender_on_timeout(struct Sender *sender, struct SenderConfig *config, __u64 now, __u64 flight, __u64 is_first);
LAW __u64 law_sender_pacing_rate(struct Sender *sender, struct SenderConfig *config, __u64 srtt);
LAW __u64 law_sender_restate(struct Sender *sender, __u64 mss, __u64 window);
LAW __u64 law_sender_resume(struct Sender *sender, struct SenderConfig *config, __u64 mss, __u64 window);
LAW __u64 law_sender_window(struct Sender *sender);
