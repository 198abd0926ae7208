/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The XCP laws as C sees them. The functions are Rust's (laws.rs). States are words to C, as many
 * as laws.rs says that they have. Names are Rust's: the BPF linker compares them.
 */
#pragma once
#include <linux/types.h>

#ifdef PXCP
#define LINK_WORDS 65
#else
#define LINK_WORDS 57
#endif
#define SENDER_WORDS 16

struct Link { __u64 state[LINK_WORDS]; };
struct Sender { __u64 state[SENDER_WORDS]; };
struct Echo { __s64 sum; };
struct CumulativeEcho { __s64 rest; __u32 stated, pad; };
struct EchoReader { __u32 heard; };

/* Times in 2^-28 s, rates in bytes/s. */
struct Header { __u32 x, rtt; __s32 delta, reverse; };

/* alpha, beta, gamma in millionths; intervals in ns. */
#ifdef PXCP
#define LinkConfig XcpLinkConfig /* a part of P-XCP's, below */
#endif
struct LinkConfig {
	__u64 capacity;
	__u32 alpha, beta, gamma;
	__u64 min_interval, max_interval, initial_interval, allowed_queue;
	__u8 capture;
	__u8 thesis;
	__u8 overdraw;
	__u8 bound_headers;
	__u8 spread;
};

#ifdef PXCP
#undef LinkConfig
/* k, r_max and weight_cap in millionths. */
struct LinkConfig {
	struct XcpLinkConfig xcp;
	__u32 k, r_max, weight_cap;
};
#endif

/* request: 0 demand, 1 unlimited. loss: 0 tcp, 1 maintain, 2 fallback. rate_source: 0 window,
 * 1 measured. aging (0: off) and price in millionths. */
struct SenderConfig {
	__u64 desired_rate;
	__u32 request, loss, rate_source, aging, price;
	__u8 clamp, pacing, ns2;
};

/* What an ACK returns: the word is XCP's feedback, signed; XCP's laws do not look at the byte. */
struct Reply { __u32 word; __u8 byte; };

struct Ack {
	__u64 acked, flight, awnd, rtt, srtt;
	struct Reply reply;
	__u8 is_duplicate, in_recovery, is_window_limited, is_late;
};

struct Send {
	__u64 size, srtt, awnd, backlog, inflation;
	__u8 is_window_limited;
};

struct Report {
	__u64 intervals, input;
	__s64 feedback;
	__u64 interval, persistent_queue, bounded;
};

/* Hidden: static subprograms to the verifier, which then accepts map pointers and spin locks. */
#define LAW extern __attribute__((visibility("hidden"))) __u64

LAW law_link_init(struct Link *, const struct LinkConfig *, __u64 phase, __u64 queue_phase);
LAW law_link_set_capacity(struct Link *, __u64 capacity);
LAW law_link_on_arrival(struct Link *, __u64 now, const struct Header *, __u64 size);
LAW law_link_on_departure(struct Link *, __u64 now, struct Header *, __u64 size, __u64 backlog);
LAW law_link_on_other_departure(struct Link *, __u64 now, __u64 backlog);
LAW law_link_next_deadline(const struct Link *);
LAW law_link_on_deadline(struct Link *, __u64 now, __u64 backlog);
LAW law_link_report(const struct Link *, struct Report *);

LAW law_sender_init(struct Sender *, __u64 mss, __u64 initial_window);
LAW law_sender_on_ack(struct Sender *, const struct SenderConfig *, __u64 now, const struct Ack *);
LAW law_sender_on_loss(struct Sender *, const struct SenderConfig *, __u64 now, __u64 flight);
LAW law_sender_on_timeout(struct Sender *, const struct SenderConfig *, __u64 now, __u64 flight,
			  __u64 is_first);
LAW law_sender_on_restart(struct Sender *, const struct SenderConfig *, __u64 now,
			  __u64 initial_window);
LAW law_sender_on_send(struct Sender *, const struct SenderConfig *, __u64 now,
		       const struct Send *, struct Header *);
LAW law_sender_window(const struct Sender *);
LAW law_sender_pacing_rate(const struct Sender *, const struct SenderConfig *, __u64 srtt);

LAW law_echo_on_data(struct Echo *, const struct Header *);
LAW law_echo_on_ack(struct Echo *); /* Reverse_Feedback, sign-extended */
LAW law_cumulative_on_data(struct CumulativeEcho *, const struct Header *, __u64 packets);
LAW law_cumulative_on_ack(struct CumulativeEcho *); /* the sum to state */
LAW law_reader_on_ack(struct EchoReader *, __u64 sum); /* feedback, sign-extended */
