/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * VCP's code in the ECN field: written as a host's packets leave, read and cleared as they come, so that the
 * kernel's own ECN never sees it. A part of host.bpf.c, whose state it shares.
 *
 * DPCP's packets tell by the order of their sequence and acknowledgment number which of two they are: they are exchanged
 * where nature has it otherwise, and put right before TCP sees them. The checksum is a sum, so it stays as it is.
 */
#pragma once

/* Where IP begins: bytes from the first that a program here can see. */
static __u32 network(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	return kernel->network_header - kernel->mac_header;
}

/* A TCP packet without IP options or extension headers. */
struct packet {
	__u32 at;      /* IP */
	__u32 tcp;     /* TCP */
	__u32 payload; /* bytes */
	__u32 is_v6, code;
	__u32 sequence, acknowledgment;
	struct bpf_sock_tuple tuple; /* of whoever receives it */
	__u32 tuple_size;
};

/* Whether it is one, but for a SYN, with payload. */
static int is_data(struct __sk_buff *skb, struct packet *p)
{
	struct tcphdr tcp;
	__u32 size, ports;

	p->at = network(skb);
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes(skb, p->at, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl != 5 ||
		    ip.protocol != IPPROTO_TCP || ip.frag_off & bpf_htons(0x3fff))
			return 0;
		p->is_v6 = 0;
		p->code = ip.tos & 3;
		p->tuple.ipv4.saddr = ip.saddr;
		p->tuple.ipv4.daddr = ip.daddr;
		p->tuple_size = sizeof(p->tuple.ipv4);
		p->tcp = p->at + sizeof(ip);
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes(skb, p->at, &ip, sizeof(ip)) || ip.version != 6 ||
		    ip.nexthdr != IPPROTO_TCP)
			return 0;
		p->is_v6 = 1;
		p->code = ip.flow_lbl[0] >> 4 & 3;
		__builtin_memcpy(p->tuple.ipv6.saddr, &ip.saddr, 32);
		p->tuple_size = sizeof(p->tuple.ipv6);
		p->tcp = p->at + sizeof(ip);
	} else {
		return 0;
	}
	if (bpf_skb_load_bytes(skb, p->tcp, &tcp, sizeof(tcp)) || tcp.syn)
		return 0;
	p->sequence = bpf_ntohl(tcp.seq);
	p->acknowledgment = bpf_ntohl(tcp.ack_seq);
	__builtin_memcpy(&ports, &tcp, sizeof(ports));
	if (p->is_v6)
		__builtin_memcpy(&p->tuple.ipv6.sport, &ports, sizeof(ports));
	else
		__builtin_memcpy(&p->tuple.ipv4.sport, &ports, sizeof(ports));
	/* Not by IP's own length, which super-packets may not have. */
	size = p->tcp + tcp.doff * 4;
	return skb->len > size;
}

/* Sets the field. Version and class are one word, which in IPv4 the header's checksum covers. */
static int set_code(struct __sk_buff *skb, const struct packet *p, __u32 code)
{
	__u8 bytes[2], before[2];
	__be16 old, new;

	if (bpf_skb_load_bytes(skb, p->at, bytes, sizeof(bytes)))
		return 0;
	__builtin_memcpy(before, bytes, sizeof(before));
	if (p->is_v6)
		bytes[1] = (bytes[1] & ~0x30) | code << 4;
	else
		bytes[1] = (bytes[1] & ~3) | code;
	__builtin_memcpy(&old, before, sizeof(old));
	__builtin_memcpy(&new, bytes, sizeof(new));
	if (old == new)
		return 1;
	if (!p->is_v6 &&
	    bpf_l3_csum_replace(skb, p->at + offsetof(struct iphdr, check), old, new, sizeof(new)))
		return 0;
	return !bpf_skb_store_bytes(skb, p->at, bytes, sizeof(bytes), p->is_v6 ? BPF_F_RECOMPUTE_CSUM : 0);
}

#ifdef DPCP
#define UNKNOWN 2
#define NEAR (1 << 28) /* larger than any window, less than what tells two numbers apart */

/* The place that the numbers of a packet tell. */
static __u32 place_of(const struct packet *p)
{
	return p->sequence > p->acknowledgment ? 0 : p->sequence < p->acknowledgment ? 1 : UNKNOWN;
}

static void exchange(struct __sk_buff *skb, const struct packet *p)
{
	__be32 words[2] = { bpf_htonl(p->acknowledgment), bpf_htonl(p->sequence) };

	if (bpf_skb_store_bytes(skb, p->tcp + offsetof(struct tcphdr, seq), words, sizeof(words), 0))
		COUNT(unwritten);
}

/* Orders the numbers of a packet as its place wants them. Where they are equal it tells none. */
static void write_place(struct __sk_buff *skb, const struct packet *p, __u32 place)
{
	__u32 natural = place_of(p);

	if (natural != UNKNOWN && natural != place && skb->gso_segs <= 1)
		exchange(skb, p);
}

static int is_near(__u32 number, __u32 other)
{
	__s32 distance = number - other;

	return distance < NEAR && distance > -NEAR;
}

/* Whether the numbers of a packet stand in each other's place: docs/design/protocols.md 6.3. Where they are near each
 * other, the connection's own order tells. */
static int is_exchanged(struct tcp_sock *tp, const struct packet *p)
{
	__u32 next = tp->rcv_nxt, una = tp->snd_una;
	int stays = is_near(p->sequence, next) && is_near(p->acknowledgment, una);
	int turns = is_near(p->acknowledgment, next) && is_near(p->sequence, una);

	if (stays && turns)
		return place_of(p) != UNKNOWN && (p->sequence > p->acknowledgment) != (next > tp->snd_nxt);
	return turns;
}
#endif

/* The socket is locked: its packets come here on the way that they leave TCP. With the kernel's law in
 * force the packet is one of that law's. */
SEC("tc")
int cl_host_out(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
	struct flow *flow = tp ? bpf_sk_storage_get(&flows, tp, 0, 0) : 0;
	struct packet p = {};

	__u32 code;

	if (!flow || !flow->is_spoken || flow->law != XCP || !is_data(skb, &p))
		return TC_ACT_UNSPEC;
#ifdef DPCP
	write_place(skb, &p, law_sender_next_place(&flow->sender, SENDER, bpf_ktime_get_ns(), srtt_of(tp)));
	code = 1;
#else
	code = law_sender_on_send(&flow->sender, SENDER, bpf_ktime_get_ns()) & 3;
#endif
	if (set_code(skb, &p, code))
		COUNT(shims_sent);
	else
		COUNT(unwritten);
	return TC_ACT_UNSPEC;
}

/* Packets of one connection come one after the other where the machine has not spread them over
 * processors; where it has, a count may be lost, and the next packet has the same code. */
SEC("tc")
int cl_host_in(struct __sk_buff *skb)
{
	struct packet p = {};
	struct bpf_sock *sk;
	struct tcp_sock *tp;
	struct flow *flow;

	if (!is_data(skb, &p))
		return TC_ACT_UNSPEC;
#ifndef DPCP /* whose numbers are put right also where somebody has cleared the code */
	if (!p.code)
		return TC_ACT_UNSPEC;
#endif
	if (p.is_v6)
		sk = bpf_skc_lookup_tcp(skb, &p.tuple, sizeof(p.tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	else
		sk = bpf_skc_lookup_tcp(skb, &p.tuple, sizeof(p.tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return TC_ACT_UNSPEC;
	tp = bpf_skc_to_tcp_sock(sk);
	flow = tp ? bpf_sk_storage_get(&flows, tp, 0, 0) : 0;
	if (flow && flow->is_spoken) {
		__u32 packets = skb->gso_segs > 1 ? skb->gso_segs : 1;

#ifdef DPCP
		law_pairs_on_data(&flow->echo, p.code, place_of(&p), packets);
		if (is_exchanged(tp, &p))
			exchange(skb, &p);
#else
		law_counts_on_data(&flow->echo, p.code, packets);
#endif
		if (p.code) {
			set_code(skb, &p, 0);
			COUNT(shims_received);
		}
	}
	bpf_sk_release(sk);
	return TC_ACT_UNSPEC;
}
