/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * VCP's laws as C sees them, as law.h has XCP's. The functions are Rust's (vcp.rs).
 */
#pragma once
#include <linux/types.h>

#define LINK_WORDS 20
#define SENDER_WORDS 14

struct Link { __u64 state[LINK_WORDS]; };
struct Sender { __u64 state[SENDER_WORDS]; };
/* Packets by code, a byte for each: 01 lowest. */
struct Counts { __u32 word; };
struct CountsReader { __u32 heard; };

/* Spans in ns, ratios in millionths. As large as XCP's. */
struct LinkConfig {
	__u64 capacity, interval, sample;
	__u32 gamma, kq, queue_weight;
	__u32 rest[7];
};

/* loss: 0 tcp, 1 maintain. hold: 0 interval, 1 round trip. Spans in us, ratios in millionths. As large as XCP's. */
struct SenderConfig {
	__u32 alpha, beta, xi;
	__u32 loss;
	__u32 exponent_max;
	__u32 interval, rtt_max;
	__u8 hold, pacing, smooth, pad;
};

/* What an ACK returns: the word is VCP's echo. */
struct Reply { __u32 word; __u8 byte; };

struct Ack {
	__u64 acked, flight, awnd, rtt, srtt;
	struct Reply reply;
	__u8 is_duplicate, in_recovery, is_window_limited, is_late;
};

struct Report {
	__u64 intervals;
	__u32 load;
	__u16 level;
	__u8 zone;
};

#define LAW extern __attribute__((visibility("hidden"))) __u64

LAW law_link_init(struct Link *, const struct LinkConfig *, __u64 phase, __u64 queue_phase);
LAW law_link_set_capacity(struct Link *, __u64 capacity);
LAW law_link_on_arrival(struct Link *, __u64 now, __u64 size);
LAW law_link_raise(const struct Link *, __u64 code); /* the code to leave with */
LAW law_link_next_deadline(const struct Link *);
LAW law_link_on_deadline(struct Link *, __u64 now, __u64 backlog);
LAW law_link_report(const struct Link *, struct Report *);

LAW law_sender_init(struct Sender *, __u64 mss, __u64 initial_window);
LAW law_sender_on_ack(struct Sender *, const struct SenderConfig *, __u64 now, const struct Ack *);
LAW law_sender_on_loss(struct Sender *, const struct SenderConfig *, __u64 now, __u64 flight);
LAW law_sender_on_timeout(struct Sender *, const struct SenderConfig *, __u64 now, __u64 flight,
			  __u64 is_first);
LAW law_sender_on_send(struct Sender *, const struct SenderConfig *, __u64 now); /* the code of a packet */
LAW law_sender_zone(const struct Sender *); /* 1 low, 2 high, 3 over */
LAW law_sender_window(const struct Sender *);
LAW law_sender_pacing_rate(const struct Sender *, const struct SenderConfig *, __u64 srtt);

LAW law_counts_on_data(struct Counts *, __u64 code, __u64 packets);
LAW law_reader_on_ack(struct CountsReader *, __u64 word); /* the reply */
