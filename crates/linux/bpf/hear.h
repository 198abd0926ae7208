/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a packet with the option brings to a socket, DPCP's law of it, and when a socket leaves its law. A part of host.bpf.c, whose state it shares. */
#pragma once

#if defined(VCP) && !defined(MARKS)
/* What the reader of an echo says where all data packets that are new came with 00. */
#ifdef DPCP
#define IS_CLEARED(word) ((word) >> 31)
#else
#define IS_CLEARED(word) ((word) && !((word) & 3))
#endif
#endif

#ifdef PLAIN
/* What headers between IP and TCP have brought since. */
static void listen(struct flow *flow)
{
	__u64 came = *(volatile __u64 *)&flow->shims_came;
	__s64 change;

	if (came == flow->shims_heard)
		return;
	flow->shims_heard = came;
	flow->has_heard = ECHO;
	change = __sync_lock_test_and_set(&flow->reverse_came, 0);
	if (!change)
		return; /* nothing was asked for, or all of it was refused */
	flow->has_heard = VERDICT;
	/* A router's feedback may be a whole number of steps now and then. */
	if (change & (STEP - 1) || flow->routers)
		flow->pending += change;
	flow->routers = (change & (STEP - 1)) != 0;
	if (flow->routers)
		flow->was_answered = 1;
}
#endif

#ifndef VCP
/* Segments that came as one. Their options are equal, or they would not have been joined. */
static __u32 segments_of(struct bpf_sock_ops *ctx, struct tcp_sock *tp)
{
	struct skb_shared_info *info;
	struct sk_buff *skb;
	__u32 segments;

	if (config.has_casts) {
		skb = ((struct bpf_sock_ops_kern *)bpf_cast_to_kern_ctx(ctx))->skb;
		info = bpf_rdonly_cast(skb->head + skb->end, bpf_core_type_id_kernel(struct skb_shared_info));
		segments = info->gso_segs;
	} else {
		/* By the size that the kernel has seen them have, behind a TCP header of 60 bytes. */
		segments = tp->inet_conn.icsk_ack.rcv_mss;
		segments = segments ? (ctx->skb_len + segments - 61) / segments : 1;
	}
	return segments ? segments : 1;
}

#ifdef XCPR
/* A packet with the option came, and with another if it brings data. */
static void hear(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct flow *flow,
		 const struct option *option, int length)
{
	struct option data = { .kind = KIND, .length = 4, .exid = bpf_htons(ROUTERS_EXID) };
	__u32 echo = bpf_ntohl(option->ack_echo);
	struct tcphdr *tcp = ctx->skb_data;

	flow->has_heard = VERDICT;
	flow->routers = echo >> 28;
	if (flow->routers)
		flow->was_answered = 1;
	/* One that acknowledges less than another before was overtaken, and tells an old window. */
	if ((void *)(tcp + 1) <= ctx->skb_data_end && (__s32)(bpf_ntohl(tcp->ack_seq) - tp->snd_una) >= 0) {
		flow->came = echo;
		flow->has_come = 1;
	}
	if (bpf_load_hdr_opt(ctx, &data, sizeof(data), 0) == DATA_OPTION) {
		struct sizes sizes = sizes_of(tp);
		struct Came came = {
			.rtt = bpf_ntohl(data.rtt) & ~ROUTERS_MAX,
			.delta = bpf_ntohl(data.delta),
			.told = bpf_ntohl(data.echo),
			.packets = segments_of(ctx, tp),
			.mss = sizes.packet,
			.awnd = in_packets(sizes, tp->rcv_wnd),
		};

		flow->their_routers = bpf_ntohl(data.rtt) & ROUTERS_MAX;
		/* Without a router the demand comes as it left: nobody granted it. */
		if (!flow->their_routers)
			came.delta = 0;
		law_echo_on_data(&flow->echo, SENDER, &came);
	}
}

#else
/* A packet with the option came. */
static void hear(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct flow *flow,
		 const struct option *option, int length)
{
	__u32 echo = bpf_ntohl(length == DATA_OPTION ? option->echo : option->ack_echo);
	__s32 change = law_reader_on_ack(&flow->reader, echo & SUM_MASK);

	if (length == DATA_OPTION) {
		struct Header header = { .delta = bpf_ntohl(option->delta) };

		flow->their_routers = bpf_ntohl(option->rtt) & ROUTERS_MAX;
		law_cumulative_on_data(&flow->echo, &header, segments_of(ctx, tp));
	}
	flow->routers = echo >> 28;
	flow->has_heard = VERDICT;
	/* Without a router the demand comes back as it left: nobody granted it. */
	if (flow->routers) {
		flow->was_answered = 1;
		flow->pending += change;
	}
}
#endif

#elif defined(MARKS)
/* A packet with the option came. One that acknowledges less than another before was overtaken. */
static void hear(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct flow *flow,
		 const struct option *option, int length)
{
	struct tcphdr *tcp = ctx->skb_data;

	flow->has_heard = ECHO;
	flow->was_answered = 1;
	if ((void *)(tcp + 1) <= ctx->skb_data_end && (__s32)(bpf_ntohl(tcp->ack_seq) - tp->snd_una) >= 0)
		flow->came = bpf_ntohl(option->ack_echo);
}

#else
/* A packet with the option came. */
static void hear(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct flow *flow,
		 const struct option *option, int length)
{
	flow->came = bpf_ntohl(option->ack_echo);
}
#endif

#ifdef DPCP
/* An echo of a code at a place: crates/core/src/law/mpcp/echo.rs. */
#define ECHOED(code, place) ((code) | (place) << 2 | 3 << 5)

/* Global: the verifier looks at it once, not at all ways through several calls together (more than a million
 * instructions). */
__attribute__((noinline)) int hear_part(struct Sender *sender, struct Ack *ack, __u64 now, __u32 part)
{
	if (sender && ack)
		law_sender_on_ack(sender, SENDER, now, ack, part);
	return 0;
}

/* A complete chain first, digit by digit, then what has begun behind it, to which the last packet is counted:
 * Sender::on_chains. */
static void hear_chains(struct flow *flow, struct Ack *ack, __u64 now)
{
	__u32 heard = ack->reply.word, digits = heard & 0xffff, count = heard >> 24;
	__u64 acked = ack->acked, behind = acked;

	if (digits && (!count || behind > flow->packet))
		behind = count ? flow->packet : 0;
	ack->acked = 0;
	for (__u32 place = 0; place < CHAIN; place++) {
		__u32 code = digits >> 2 * place & 3;

		if (place == CHAIN - 1)
			ack->acked = acked - behind;
		if (code)
			hear_part(&flow->sender, ack, now, ECHOED(code, place));
	}
	ack->acked = behind;
	if (count)
		hear_part(&flow->sender, ack, now, ECHOED(heard >> 16 & 3, 0) | (count - 1) << 8);
	else if (!digits)
		hear_part(&flow->sender, ack, now, 0);
}
#endif

/* Whether to leave XCP, and why. */
static __u8 judge(struct tcp_sock *tp, struct flow *flow, __u64 now, __u64 acked)
{
	__u64 patience = PATIENCE * srtt_of(tp);
	__u8 heard = flow->has_heard;

	if (flow->must_leave)
		return flow->must_leave;
	if (heard) {
		flow->silent = 0;
#ifndef VCP /* low load is what a path without a router says, too */
		if (heard == VERDICT && flow->routers)
			flow->unserved = 0;
		else if (heard == VERDICT && acked && !flow->unserved)
			flow->unserved = now;
#endif
	} else if (acked && !tp->sacked_out && !flow->silent) {
		/* With SACK blocks there may have been no room for an echo. */
		flow->silent = now;
	}
	flow->has_heard = NOTHING;
	if (!acked)
		return NEVER;
	if (flow->silent && now - flow->silent >= patience)
		return STRIPPED;
	if (heard == VERDICT && flow->unserved && now - flow->unserved >= patience)
		return NO_ROUTER;
	return NEVER;
}

#ifndef VCP
/* Counts feedback of this round trip, B/s. */
static void tally(struct flow *flow, __u64 now, __u64 srtt, __s64 feedback)
{
	if (now - flow->began >= srtt) {
		flow->feedback = flow->net;
		flow->net = 0;
		flow->began = now;
	}
	flow->net += feedback;
}
#endif

#if defined(PLAIN) || defined(XCPR)
/* The law has refused what the receiver claims beyond the requests. */
static void note_lies(struct flow *flow)
{
	__u32 zero = 0, lies = law_sender_lies(&flow->sender);
	struct host *host;

	if (lies == flow->lies)
		return;
	flow->lies = lies;
	host = bpf_map_lookup_elem(&hosts, &zero);
	if (host)
		__sync_fetch_and_add(&host->lies, 1);
}
#endif

#ifdef XCPR
/* Bytes of a round trip as B/s. There is no signed division here. */
static __s64 a_second(__s64 bytes, __u64 srtt)
{
	__u64 amount = bytes < 0 ? -bytes : bytes;

	amount = amount * 1000000000 / (srtt ? srtt : 1);
	return bytes < 0 ? -amount : amount;
}
#endif
