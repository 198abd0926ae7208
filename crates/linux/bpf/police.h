/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Written by build.sh of what Rust's compiler made of laws.rs (header.awk): do not edit. */
#pragma once
#include <linux/types.h>

struct CumulativeEcho {
	__s64 rest;
	__u32 stated;
	__u32 pad;
};
_Static_assert(sizeof(struct CumulativeEcho) == 16, "as Rust has it");

struct Header {
	__u32 x;
	__u32 rtt;
	__s32 delta;
	__s32 reverse;
};
_Static_assert(sizeof(struct Header) == 16, "as Rust has it");

struct Echo {
	__s64 sum;
};
_Static_assert(sizeof(struct Echo) == 8, "as Rust has it");

struct Link {
	__u64 state[64];
};
_Static_assert(sizeof(struct Link) == 512, "as Rust has it");

struct LinkConfig {
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
_Static_assert(sizeof(struct LinkConfig) == 64, "as Rust has it");

struct Report {
	__u64 intervals;
	__u64 input;
	__s64 feedback;
	__u64 interval;
	__u64 persistent_queue;
	__u64 bounded;
};
_Static_assert(sizeof(struct Report) == 48, "as Rust has it");

struct Record {
	__u64 began;
	__u64 seen;
	__u64 bytes;
	__s64 granted;
	__s64 granted_before;
	__u64 rate;
	__u64 beyond;
	__u64 credit;
	__u64 tokens;
	__u32 packets;
	__u32 rtt;
	__u8 score;
	__u8 is_held;
	__u8 wants;
	__u8 windows;
	__u8 is_starved;
	__u8 pad[3];
};
_Static_assert(sizeof(struct Record) == 88, "as Rust has it");

struct Bucket {
	__u64 flows[8];
	struct Record records[8];
};
_Static_assert(sizeof(struct Bucket) == 768, "as Rust has it");

struct Police {
	__u64 state[21];
};
_Static_assert(sizeof(struct Police) == 168, "as Rust has it");

struct Arrival {
	__u64 now;
	__u64 capacity;
	__u64 size;
	__u32 packets;
};
_Static_assert(sizeof(struct Arrival) == 32, "as Rust has it");

struct EchoReader {
	__u32 heard;
};
_Static_assert(sizeof(struct EchoReader) == 4, "as Rust has it");

struct Sender {
	__u64 state[19];
};
_Static_assert(sizeof(struct Sender) == 152, "as Rust has it");

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

/* Hidden: static subprograms to the verifier, which then accepts map pointers and spin locks. */
#define LAW extern __attribute__((visibility("hidden")))

LAW __u64 law_cumulative_on_ack(struct CumulativeEcho *echo);
LAW __u64 law_cumulative_on_data(struct CumulativeEcho *echo, struct Header *header, __u64 packets);
LAW __u64 law_echo_on_ack(struct Echo *echo);
LAW __u64 law_echo_on_data(struct Echo *echo, struct Header *header);
LAW __u64 law_link_init(struct Link *link, struct LinkConfig *config, __u64 phase, __u64 queue_phase);
LAW __u64 law_link_next_deadline(struct Link *link);
LAW __u64 law_link_on_arrival(struct Link *link, __u64 now, struct Header *header, __u64 size);
LAW __u64 law_link_on_deadline(struct Link *link, __u64 now, __u64 backlog);
LAW __u64 law_link_on_departure(struct Link *link, __u64 now, struct Header *header, __u64 size, __u64 backlog);
LAW __u64 law_link_on_other_departure(struct Link *link, __u64 now, __u64 backlog);
LAW __u64 law_link_report(struct Link *link, struct Report *report);
LAW __u64 law_link_set_capacity(struct Link *link, __u64 capacity);
LAW __u64 law_police_find(struct Bucket *bucket, __u64 flow);
LAW __u64 law_police_give(struct Bucket *bucket, __u64 place, __u64 flow, __u64 now, __u64 size);
LAW __u64 law_police_judge(struct Police *police, struct Record *record, __u64 is_known, struct Arrival *arrival, struct Header *header);
LAW __u64 law_police_loss(struct Record *record, __u64 flow, __u64 now);
LAW __u64 law_police_note_drop(struct Record *record);
LAW __u64 law_police_note_grant(struct Record *record, __u64 delta);
LAW __u64 law_police_start(struct Police *police);
LAW __u64 law_reader_on_ack(struct EchoReader *reader, __u64 sum);
LAW __u64 law_sender_init(struct Sender *sender, __u64 mss, __u64 initial_window);
LAW __u64 law_sender_lies(struct Sender *sender);
LAW __u64 law_sender_note_losses(struct Sender *sender, struct SenderConfig *config, __u64 lost);
LAW __u64 law_sender_on_ack(struct Sender *sender, struct SenderConfig *config, __u64 now, struct Ack *ack);
LAW __u64 law_sender_on_loss(struct Sender *sender, struct SenderConfig *config, __u64 now, __u64 flight);
LAW __u64 law_sender_on_restart(struct Sender *sender, struct SenderConfig *config, __u64 now, __u64 initial_window);
LAW __u64 law_sender_on_send(struct Sender *sender, struct SenderConfig *config, __u64 now, struct Send *send, struct Header *header);
LAW __u64 law_sender_on_timeout(struct Sender *sender, struct SenderConfig *config, __u64 now, __u64 flight, __u64 is_first);
LAW __u64 law_sender_pacing_rate(struct Sender *sender, struct SenderConfig *config, __u64 srtt);
LAW __u64 law_sender_resume(struct Sender *sender, __u64 mss, __u64 window);
LAW __u64 law_sender_window(struct Sender *sender);
