// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Runs a stream of operations, handed in as a packet, through the laws and writes what each
 * returned back into the packet. The states stay in a map from one packet to the next, behind a
 * spin lock as on a router port with several processors.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "law.h"

struct laws {
	struct bpf_spin_lock lock;
	__u32 pad;
	struct Link link;
	struct Sender sender;
	struct Echo echo;
	struct SenderConfig sender_config;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct laws);
} laws SEC(".maps");

enum kind {
	LINK_INIT,
	LINK_SET_CAPACITY,
	LINK_ARRIVAL,
	LINK_DEPARTURE,
	LINK_OTHER_DEPARTURE,
	LINK_DEADLINE,
	SENDER_INIT,
	SENDER_ACK,
	SENDER_LOSS,
	SENDER_TIMEOUT,
	SENDER_RESTART,
	SENDER_SEND,
	SENDER_PACING,
	ECHO_DATA,
	ECHO_ACK,
	SENDER_LOSSES,
};

struct op {
	__u64 kind, now, a, b;
	union {
		struct LinkConfig link_config;
		struct SenderConfig sender_config;
		struct Ack ack;
		struct Send send;
		struct Report report;
	};
	struct Header header;
	__u64 returned; /* by the function itself */
	__u64 after;	/* deadline of the link or window of the sender afterwards */
};
_Static_assert(sizeof(struct op) == 128, "tests/laws.rs writes the same 128 bytes");

#define ETHERNET 16 /* what a packet must have at least, rounded to words */
#define OPS 26	    /* a test packet holds less than a page */

static void run(struct laws *l, struct op *o)
{
	if (o->kind == LINK_INIT)
		o->returned = law_link_init(&l->link, &o->link_config, o->a, o->b);
	else if (o->kind == LINK_SET_CAPACITY)
		o->returned = law_link_set_capacity(&l->link, o->a);
	else if (o->kind == LINK_ARRIVAL)
		o->returned = law_link_on_arrival(&l->link, o->now, &o->header, o->a);
	else if (o->kind == LINK_DEPARTURE)
		o->returned = law_link_on_departure(&l->link, o->now, &o->header, o->a, o->b);
	else if (o->kind == LINK_OTHER_DEPARTURE)
		o->returned = law_link_on_other_departure(&l->link, o->now, o->a);
	else if (o->kind == LINK_DEADLINE) {
		o->returned = law_link_on_deadline(&l->link, o->now, o->a);
		law_link_report(&l->link, &o->report);
	}
#ifndef LAW_twin /* which has the law of links alone */
	else if (o->kind == SENDER_INIT) {
		l->sender_config = o->sender_config;
		o->returned = law_sender_init(&l->sender, o->a, o->b);
	} else if (o->kind == SENDER_ACK)
		o->returned = law_sender_on_ack(&l->sender, &l->sender_config, o->now, &o->ack);
	else if (o->kind == SENDER_LOSS)
		o->returned = law_sender_on_loss(&l->sender, &l->sender_config, o->now, o->a);
	else if (o->kind == SENDER_TIMEOUT)
		o->returned = law_sender_on_timeout(&l->sender, &l->sender_config, o->now, o->a, o->b);
	else if (o->kind == SENDER_LOSSES)
		o->returned = law_sender_note_losses(&l->sender, &l->sender_config, o->a);
	else if (o->kind == SENDER_RESTART)
		o->returned = law_sender_on_restart(&l->sender, &l->sender_config, o->now, o->a);
	else if (o->kind == SENDER_SEND)
		o->returned = law_sender_on_send(&l->sender, &l->sender_config, o->now, &o->send, &o->header);
	else if (o->kind == SENDER_PACING)
		o->returned = law_sender_pacing_rate(&l->sender, &l->sender_config, o->a);
	else if (o->kind == ECHO_DATA)
		o->returned = law_echo_on_data(&l->echo, &o->header);
	else if (o->kind == ECHO_ACK)
		o->returned = law_echo_on_ack(&l->echo);
	if (o->kind >= SENDER_INIT) {
		o->after = law_sender_window(&l->sender);
		return;
	}
#endif
	o->after = law_link_next_deadline(&l->link);
}

struct context {
	struct __sk_buff *skb;
	struct laws *laws;
};

static long step(__u32 i, struct context *c)
{
	struct op o;

	if (bpf_skb_load_bytes(c->skb, ETHERNET + i * sizeof(o), &o, sizeof(o)))
		return 1;
	bpf_spin_lock(&c->laws->lock);
	run(c->laws, &o);
	bpf_spin_unlock(&c->laws->lock);
	return bpf_skb_store_bytes(c->skb, ETHERNET + i * sizeof(o), &o, sizeof(o), 0) != 0;
}

SEC("tc")
int stream(struct __sk_buff *skb)
{
	struct context c = { .skb = skb };
	__u32 key = 0;

	c.laws = bpf_map_lookup_elem(&laws, &key);
	if (!c.laws)
		return -1;
	return bpf_loop(OPS, step, &c, 0);
}

char _license[] SEC("license") = "GPL";
