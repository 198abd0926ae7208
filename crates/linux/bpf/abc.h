/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Written by build.sh of what Rust's compiler made of marks.rs (header.awk): do not edit. */
#pragma once
#include <linux/types.h>

struct Counts {
	__u32 words[2];
};
_Static_assert(sizeof(struct Counts) == 8, "as Rust has it");

struct CountsReader {
	__u32 told;
	__u32 counts[3];
};
_Static_assert(sizeof(struct CountsReader) == 16, "as Rust has it");

struct Sender {
	__u64 state[14];
};
_Static_assert(sizeof(struct Sender) == 112, "as Rust has it");

struct SenderConfig {
	__u64 rtt_target;
	__u32 transition;
	__u8 rtt_independent;
	__u8 linux;
	__u8 pacing;
	__u8 rest[17];
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

LAW __u64 law_counts_on_ack(struct Counts *counts);
LAW __u64 law_counts_on_data(struct Counts *counts, __u64 code, __u64 packets);
LAW __u64 law_reader_init(struct CountsReader *reader, __u64 word);
LAW __u64 law_reader_on_ack(struct CountsReader *reader, __u64 word);
LAW __u64 law_sender_init(struct Sender *sender, struct SenderConfig *config, __u64 mss, __u64 initial_window);
LAW __u64 law_sender_on_ack(struct Sender *sender, struct SenderConfig *config, __u64 now, struct Ack *ack);
LAW __u64 law_sender_on_loss(struct Sender *sender, struct SenderConfig *config, __u64 now, __u64 flight);
LAW __u64 law_sender_on_send(struct Sender *sender, struct SenderConfig *config, __u64 now);
LAW __u64 law_sender_on_timeout(struct Sender *sender, struct SenderConfig *config, __u64 now, __u64 flight, __u64 is_first);
LAW __u64 law_sender_pacing_rate(struct Sender *sender, struct SenderConfig *config, __u64 srtt);
LAW __u64 law_sender_window(struct Sender *sender);
