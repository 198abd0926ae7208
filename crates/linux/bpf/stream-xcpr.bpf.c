// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * XCP-r's sender and receiver put through operations that a test gives, in a packet's bytes, and answered there. No
 * object ships with it.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include "xcpr.h"

enum kind { SENDER_INIT, RESTATE, ACK, LOSS, TIMEOUT, SEND, PACING, ECHO_INIT, DATA, ECHO_ACK };

struct op {
	__u64 kind, now, a, b;
	union {
		struct SenderConfig config;
		struct Ack ack;
		struct Send send;
		struct Came came;
	};
	struct Header header;
	__u64 returned;	     /* by the function itself */
	__u64 window, epoch; /* of the sender afterwards */
};
_Static_assert(sizeof(struct op) == 128, "tests/laws.rs writes the same 128 bytes");

struct state {
	struct op op;
	struct Sender sender;
	struct Echo echo;
	struct SenderConfig config;
};

#include "stream.h"

static __u64 run(struct state *s, struct op *o)
{
	switch (o->kind) {
	case SENDER_INIT:
		s->config = o->config;
		return law_sender_init(&s->sender, &s->config, o->a, o->b);
	case RESTATE:
		return law_sender_restate(&s->sender, o->a, o->b);
	case ACK:
		return law_sender_on_ack(&s->sender, &s->config, o->now, &o->ack, o->a);
	case LOSS:
		return law_sender_on_loss(&s->sender, &s->config, o->now, o->a);
	case TIMEOUT:
		return law_sender_on_timeout(&s->sender, &s->config, o->now, o->a, o->b);
	case SEND:
		return law_sender_on_send(&s->sender, &s->config, o->now, &o->send, &o->header);
	case PACING:
		return law_sender_pacing_rate(&s->sender, &s->config, o->a);
	case ECHO_INIT:
		return law_echo_init(&s->echo, o->a);
	case DATA:
		return law_echo_on_data(&s->echo, &s->config, &o->came);
	case ECHO_ACK:
		return law_echo_on_ack(&s->echo);
	}
	return 0;
}

static __always_inline int operate(struct state *s)
{
	s->op.returned = run(s, &s->op);
	s->op.window = law_sender_window(&s->sender);
	s->op.epoch = law_sender_epoch(&s->sender);
	return 0;
}
