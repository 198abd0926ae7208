/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DPCP's chains at a router: which of two packets one is, and what is remembered of its flow. A part of
 * router-vcp.bpf.c.
 */
#pragma once

#define FLOWS_MAX 16384
#define IDLE 10000000000ull /* ns; LinkConfig::of, A-17 */

/* IPv4 has two words of the addresses. */
struct flow { __u32 addresses[8]; __u32 ports; };
struct record {
	__u64 seen; /* ns */
	__u32 word; /* the law's */
	__u32 pad;
};

/* The flow seen last longest ago makes room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FLOWS_MAX);
	__type(key, struct flow);
	__type(value, struct record);
} flows SEC(".maps");

/* Where in a chain a packet is. */
struct place {
	struct flow flow;
	__u32 is_chain; /* it is TCP's, so that its code is a digit */
	__u32 index;	/* 0 first, 1 second, 2: its numbers are equal and say nothing */
};

/* The code of a packet, 0: none, and its place. */
__attribute__((noinline)) int read_place(struct __sk_buff *skb, struct packet *p, struct place *place,
					 __u32 link_header)
{
	__u32 sequence, acknowledgment;
	__u8 version;
	struct tcphdr tcp;

	if (!p || !place || !find(skb, p, link_header) || !p->ecn)
		return 0;
	if (p->protocol != IPPROTO_TCP || p->is_fragment || bpf_skb_load_bytes(skb, p->at, &tcp, sizeof(tcp)))
		return p->ecn;
	if (bpf_skb_load_bytes(skb, p->network, &version, sizeof(version)))
		return p->ecn;
	if (version >> 4 == 4) {
		if (bpf_skb_load_bytes(skb, p->network + offsetof(struct iphdr, saddr), place->flow.addresses, 8))
			return p->ecn;
	} else if (bpf_skb_load_bytes(skb, p->network + offsetof(struct ipv6hdr, saddr), place->flow.addresses, 32)) {
		return p->ecn;
	}
	__builtin_memcpy(&place->flow.ports, &tcp, sizeof(place->flow.ports));
	sequence = bpf_ntohl(tcp.seq);
	acknowledgment = bpf_ntohl(tcp.ack_seq);
	place->is_chain = 1;
	place->index = sequence > acknowledgment ? 0 : sequence < acknowledgment ? 1 : 2;
	return p->ecn;
}

/* The record of a flow, which begins with a first packet; null: nothing is known of it, and the packet is told the zone. No map can be searched while the port is locked. */
static __always_inline struct record *record_of(const struct place *place, __u64 now)
{
	struct record none = { .seen = now }, *record;

	if (place->index > 1)
		return 0;
	record = bpf_map_lookup_elem(&flows, &place->flow);
	if (record && place->index && now - record->seen > IDLE)
		return 0;
	if (!record && !place->index) {
		bpf_map_update_elem(&flows, &place->flow, &none, BPF_NOEXIST);
		record = bpf_map_lookup_elem(&flows, &place->flow);
	}
	return record;
}
