/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * VCP's code in the ECN field: written as a host's packets leave, read and cleared as they come, so that the
 * kernel's own ECN never sees it. A part of host.bpf.c, whose state it shares.
 *
 * DPCP's packets tell by the order of their sequence and acknowledgment number which of two they are: they are exchanged
 * where nature has it otherwise, and put right before TCP sees them. The checksum is a sum, so it stays as it is.
 *
 * TPCP's packets take their place off the acknowledgment number and leave the checksum that was right before: its sum is so
 * much short (MP 5), until the receiver adds it again before TCP sees the packet.
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
	__u32 length;  /* bytes of TCP, by IP's own length */
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
		p->length = bpf_ntohs(ip.tot_len) - sizeof(ip);
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
		p->length = bpf_ntohs(ip.payload_len);
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

#ifdef TPCP
#define UNKNOWN CHAIN
#define CHECKSUM_PARTIAL 3
#define PIECE 512 /* bytes that bpf_csum_diff takes at a time */
#define PIECES 20 /* a packet of 9,000 bytes, the largest that Ethernets carry, has 18 */

struct piece { __u8 bytes[PIECE]; };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct piece);
} pieces SEC(".maps");

static __u32 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Whether the checksum is yet to be made of what its field holds, the sum of the pseudo header: so TCP leaves it. */
static int is_partial(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	return BPF_CORE_READ_BITFIELD(kernel, ip_summed) == CHECKSUM_PARTIAL;
}

/* The place that the checksum of a packet tells: by how much its sum is short. Global: the verifier looks at it once. */
__attribute__((noinline)) int deficit_of(struct __sk_buff *skb, struct packet *p)
{
	__u32 zero = 0, at, left, sum;
	struct piece *piece = bpf_map_lookup_elem(&pieces, &zero);
	__be16 field;

	if (!p || !piece)
		return UNKNOWN;
	at = p->tcp;
	left = p->length;
	sum = bpf_htons(IPPROTO_TCP) + bpf_htons(left);
	sum = p->is_v6 ? bpf_csum_diff(0, 0, (__be32 *)p->tuple.ipv6.saddr, 32, sum) :
			 bpf_csum_diff(0, 0, &p->tuple.ipv4.saddr, 8, sum);
	if (is_partial(skb)) {
		if (bpf_skb_load_bytes(skb, at + offsetof(struct tcphdr, check), &field, sizeof(field)))
			return UNKNOWN;
		/* The field is as much more. */
		sum = bpf_ntohs(fold(fold(sum) + (__u16)~field));
		return sum == 0xffff ? 0 : 0xffff - sum;
	}
	for (int i = 0; i < PIECES && left; i++) {
		__u32 size = left;

		if (size >= PIECE)
			size = PIECE;
		else
			__builtin_memset(piece->bytes, 0, PIECE);
		/* Opaque, or the compiler checks a copy and the verifier does not believe it. */
		asm volatile("" : "+r"(size));
		if (size < 1 || size > PIECE || bpf_skb_load_bytes(skb, at, piece->bytes, size))
			return UNKNOWN;
		sum = bpf_csum_diff(0, 0, (__be32 *)piece->bytes, PIECE, sum);
		at += size;
		left -= size;
	}
	sum = bpf_ntohs(fold(sum));
	if (left)
		return UNKNOWN;
	return sum == 0xffff || !sum ? 0 : 0xffff - sum;
}

/* The place of a packet; a super-packet is of firsts, for others can not be joined. */
static __u32 place_of(struct __sk_buff *skb, struct packet *p)
{
	__u32 deficit = skb->gso_segs > 1 ? 0 : deficit_of(skb, p);

	return deficit < CHAIN ? deficit : UNKNOWN;
}

/* Takes a place off the acknowledgment number, and leaves the checksum that the packet has without: one that is yet to be
 * made gets it into its sum. A number that is smaller can not, and is that of a first one. */
static void write_place(struct __sk_buff *skb, const struct packet *p, __u32 place)
{
	__be32 number = bpf_htonl(p->acknowledgment - place);
	__u32 at = p->tcp + offsetof(struct tcphdr, check);
	__be16 field;

	if (!place || p->acknowledgment < place || skb->gso_segs > 1)
		return;
	if (bpf_skb_load_bytes(skb, at, &field, sizeof(field)) ||
	    bpf_skb_store_bytes(skb, p->tcp + offsetof(struct tcphdr, ack_seq), &number, sizeof(number), 0)) {
		COUNT(unwritten);
		return;
	}
	if (!is_partial(skb))
		return;
	field = bpf_htons(fold(bpf_ntohs(field) + place));
	bpf_skb_store_bytes(skb, at, &field, sizeof(field), 0);
}

/* Gives the packet its own number back, and with it a right checksum. */
static void restore(struct __sk_buff *skb, const struct packet *p, __u32 place)
{
	__be32 number = bpf_htonl(p->acknowledgment + place);

	if (!place || place == UNKNOWN)
		return;
	if (bpf_skb_store_bytes(skb, p->tcp + offsetof(struct tcphdr, ack_seq), &number, sizeof(number),
				BPF_F_RECOMPUTE_CSUM))
		COUNT(unwritten);
}

/* Whether a socket is none that takes data: those on the way when their connection ended go to a listener, one that waits for
 * such packets, or to nobody. */
static int is_over(const struct bpf_sock *sk)
{
	return !sk || sk->state == BPF_TCP_TIME_WAIT || sk->state == BPF_TCP_LISTEN;
}
#elif defined(DPCP)
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
#ifdef MARKS /* VCP's family counts packets whose code somebody has cleared, and puts the numbers of chains right */
	if (!p.code)
		return TC_ACT_UNSPEC;
#endif
	if (p.is_v6)
		sk = bpf_skc_lookup_tcp(skb, &p.tuple, sizeof(p.tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	else
		sk = bpf_skc_lookup_tcp(skb, &p.tuple, sizeof(p.tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
#ifdef TPCP
	/* Put right as well, or TCP takes it for damaged and its sender never hears that nobody is there. */
	if (p.code && is_over(sk))
		restore(skb, &p, place_of(skb, &p));
#endif
	if (!sk)
		return TC_ACT_UNSPEC;
	tp = bpf_skc_to_tcp_sock(sk);
	flow = tp ? bpf_sk_storage_get(&flows, tp, 0, 0) : 0;
	if (flow && flow->is_spoken) {
		__u32 packets = skb->gso_segs > 1 ? skb->gso_segs : 1;

#ifdef DPCP
		__u32 place;
#endif
#ifdef TPCP
		place = place_of(skb, &p);
		restore(skb, &p, place);
#elif defined(DPCP)
		place = place_of(&p);
		if (is_exchanged(tp, &p))
			exchange(skb, &p);
#endif
#ifdef DPCP
		law_chains_on_data(&flow->echo, p.code, place, packets);
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
