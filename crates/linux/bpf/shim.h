// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The header between IP and TCP (draft-03): put in as a host's packets leave, taken out as they come.
 * A part of host.bpf.c, whose state it shares.
 */
#pragma once

/* An IP header and the one behind it, so that both are written at once. */
struct v4 { struct iphdr ip; struct shim shim; struct extension more; };
struct v6 { struct ipv6hdr ip; struct shim shim; };

/* Where IP begins: bytes from the first that a program here can see. */
static __u32 network(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	return kernel->network_header - kernel->mac_header;
}

static void sum_up(struct iphdr *ip)
{
	__s64 sum;

	ip->check = 0;
	sum = bpf_csum_diff(0, 0, (__be32 *)ip, sizeof(*ip), 0);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff);
	ip->check = ~(sum + (sum >> 16));
}

/* Where TCP begins, and how much follows from there on. */
struct segment { __u32 at, size; };

/* The header of a packet of a connection that is spoken so; 0: none. The socket is locked: its packets
 * come here on the way that they leave TCP. */
static int fill(struct __sk_buff *skb, struct tcp_sock *tp, struct flow *flow,
		const struct segment *segment, struct shim *shim)
{
	struct Header header = {};
	struct tcphdr tcp;
	__s64 sum, reverse;
	__u32 size, whole = tp->inet_conn.icsk_af_ops->net_header_len + segment->size +
		(flow->is_interoperable ? LENGTH_MAX : sizeof(*shim));

	if (bpf_skb_load_bytes(skb, segment->at, &tcp, sizeof(tcp)) || segment->size < tcp.doff * 4)
		return 0;
	size = segment->size - tcp.doff * 4;
	/* The handshake's last ACK must arrive, whatever stands in the way. */
	if (tcp.syn || (!size && !flow->shims_came))
		return 0;
	/* Super-packets can not be cut any more; with three SACK blocks the kernel spares no room. */
	if (skb->gso_size || whole > sizes_of(tp).packet) {
		COUNT(unwritten);
		return 0;
	}
	*shim = (struct shim){ IPPROTO_TCP, sizeof(*shim), MINIMAL };
	if (size && flow->law != NOBODY) {
		state(tp, flow, size, tp->data_segs_out <= 1, &header);
		/* Toward zero. */
		if (header.delta >= 0)
			header.delta &= ~(STEP - 1);
		else
			header.delta = -(__s32)(-(__u32)header.delta & ~(STEP - 1));
		shim->version_format = STANDARD;
		shim->x = bpf_htonl(header.x);
		shim->rtt = bpf_htonl(header.rtt);
		shim->delta = bpf_htonl(header.delta);
	}
	sum = __sync_lock_test_and_set(&flow->delta_came, 0);
	reverse = sum > REVERSE_MAX ? REVERSE_MAX : sum < -REVERSE_MAX ? -REVERSE_MAX : sum;
	if (sum != reverse)
		__sync_fetch_and_add(&flow->delta_came, sum - reverse);
	shim->reverse = bpf_htonl((__s32)reverse);
	return 1;
}

SEC("tc")
int cl_host_out(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
	struct flow *flow = tp ? bpf_sk_storage_get(&flows, tp, 0, 0) : 0;
	struct segment segment;
	int is_interoperable;
	__u32 at;

	if (!flow || !flow->is_shim)
		return TC_ACT_UNSPEC;
	at = network(skb);
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct v4 v4;

		/* The kernel makes room behind a header without options. */
		if (bpf_skb_load_bytes(skb, at, &v4.ip, sizeof(v4.ip)) || v4.ip.version != 4 ||
		    v4.ip.ihl != 5 || v4.ip.protocol != IPPROTO_TCP)
			return TC_ACT_UNSPEC;
		segment = (struct segment){ at + sizeof(v4.ip), bpf_ntohs(v4.ip.tot_len) - sizeof(v4.ip) };
		if (!fill(skb, tp, flow, &segment, &v4.shim))
			return TC_ACT_UNSPEC;
		/* The cloud may begin behind this host, which is then the edge before it (XI III-B). */
		v4.more = (struct extension){ v4.ip.ttl, 0, 0, v4.ip.saddr };
		is_interoperable = flow->is_interoperable && v4.shim.version_format == STANDARD;
		if (is_interoperable) {
			v4.shim.version_format = INTEROPERABLE;
			v4.shim.length = LENGTH_MAX;
		}
		v4.ip.protocol = SHIM_PROTOCOL;
		v4.ip.tot_len = bpf_htons(bpf_ntohs(v4.ip.tot_len) + v4.shim.length);
		sum_up(&v4.ip);
		if (bpf_skb_adjust_room(skb, v4.shim.length, BPF_ADJ_ROOM_NET, 0))
			goto no_room;
		if (is_interoperable ? bpf_skb_store_bytes(skb, at, &v4, sizeof(v4), BPF_F_RECOMPUTE_CSUM) :
				       bpf_skb_store_bytes(skb, at, &v4, offsetof(struct v4, more), BPF_F_RECOMPUTE_CSUM))
			return TC_ACT_SHOT;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct v6 v6;

		if (bpf_skb_load_bytes(skb, at, &v6.ip, sizeof(v6.ip)) || v6.ip.version != 6 ||
		    v6.ip.nexthdr != IPPROTO_TCP)
			return TC_ACT_UNSPEC;
		segment = (struct segment){ at + sizeof(v6.ip), bpf_ntohs(v6.ip.payload_len) };
		if (!fill(skb, tp, flow, &segment, &v6.shim))
			return TC_ACT_UNSPEC;
		v6.ip.nexthdr = SHIM_PROTOCOL;
		v6.ip.payload_len = bpf_htons(bpf_ntohs(v6.ip.payload_len) + sizeof(v6.shim));
		if (bpf_skb_adjust_room(skb, sizeof(v6.shim), BPF_ADJ_ROOM_NET, 0))
			goto no_room;
		if (bpf_skb_store_bytes(skb, at, &v6, sizeof(v6), BPF_F_RECOMPUTE_CSUM))
			return TC_ACT_SHOT;
	} else {
		return TC_ACT_UNSPEC;
	}
	COUNT(shims_sent);
	return TC_ACT_UNSPEC;
no_room:
	COUNT(unwritten);
	return TC_ACT_UNSPEC;
}

/* Whether a header is one that we take out. All others stay, also those of other experiments with the
 * protocol's number: the kernel answers for what it does not know. */
static int is_valid(const struct shim *shim)
{
	return shim->protocol == IPPROTO_TCP && shim->version_format >> 4 == STANDARD >> 4 &&
	       shim->length == (shim->version_format == INTEROPERABLE ? LENGTH_MAX : sizeof(*shim));
}

/* Whether the kernel will send it on to another machine. */
static int is_forwarded(struct __sk_buff *skb, struct bpf_fib_lookup *route)
{
	long found;

	route->l4_protocol = IPPROTO_TCP;
	route->ifindex = skb->ingress_ifindex;
	found = bpf_fib_lookup(skb, route, sizeof(*route), 0);
	return found == BPF_FIB_LKUP_RET_SUCCESS || found == BPF_FIB_LKUP_RET_NO_NEIGH ||
	       found == BPF_FIB_LKUP_RET_FRAG_NEEDED;
}

/* Finds the socket, and gives it what the header says; without one, the peer has gone over to the
 * option. 0 if there is no socket: a connection may be over, or another machine's. A socket that listens
 * does not say which. */
static int deliver(struct __sk_buff *skb, struct bpf_sock_tuple *tuple, __u32 size,
		   const struct shim *shim)
{
	struct bpf_sock *sk = bpf_skc_lookup_tcp(skb, tuple, size, BPF_F_CURRENT_NETNS, 0);
	int is_found;
	struct tcp_sock *tp;
	struct flow *flow;

	if (!sk)
		return 0;
	is_found = sk->state != BPF_TCP_LISTEN;
	tp = bpf_skc_to_tcp_sock(sk);
	flow = tp ? bpf_sk_storage_get(&flows, tp, 0, 0) : 0;
	if (flow && !shim) {
		flow->is_shim = 0;
	} else if (flow && flow->is_shim) {
		if (shim->version_format == STANDARD || shim->version_format == INTEROPERABLE)
			__sync_fetch_and_add(&flow->delta_came, (__s64)(__s32)bpf_ntohl(shim->delta));
		__sync_fetch_and_add(&flow->reverse_came, (__s64)(__s32)bpf_ntohl(shim->reverse));
		__sync_fetch_and_add(&flow->shims_came, 1);
	}
	bpf_sk_release(sk);
	return is_found;
}

/* Whether a TCP packet behind the handshake has the option, which the kernel puts last. TCP itself shows
 * it to no program if the data came before, and their ACK with the other header was lost. */
static int has_option(struct __sk_buff *skb, __u32 at)
{
	struct option option;
	struct tcphdr tcp;
	__u32 end;

	if (bpf_skb_load_bytes(skb, at, &tcp, sizeof(tcp)) || tcp.syn ||
	    tcp.doff * 4 < sizeof(tcp) + ACK_OPTION)
		return 0;
	end = at + tcp.doff * 4;
	if (!bpf_skb_load_bytes(skb, end - ACK_OPTION, &option, 4) && option.kind == KIND &&
	    option.length == ACK_OPTION && option.exid == bpf_htons(EXID))
		return 1;
	return !bpf_skb_load_bytes(skb, end - DATA_OPTION, &option, 4) && option.kind == KIND &&
	       option.length == DATA_OPTION && option.exid == bpf_htons(EXID);
}

SEC("tc")
int cl_host_in(struct __sk_buff *skb)
{
	struct bpf_fib_lookup route = {};
	struct bpf_sock_tuple tuple = {};
	__u32 at = network(skb), ports;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct v4 v4;

		if (bpf_skb_load_bytes(skb, at, &v4.ip, sizeof(v4.ip)) || v4.ip.version != 4)
			return TC_ACT_UNSPEC;
		tuple.ipv4.saddr = v4.ip.saddr;
		tuple.ipv4.daddr = v4.ip.daddr;
		if (v4.ip.protocol == IPPROTO_TCP && has_option(skb, at + v4.ip.ihl * 4) &&
		    !bpf_skb_load_bytes(skb, at + v4.ip.ihl * 4, &tuple.ipv4.sport, sizeof(ports)))
			deliver(skb, &tuple, sizeof(tuple.ipv4), 0);
		if (v4.ip.protocol != SHIM_PROTOCOL)
			return TC_ACT_UNSPEC;
		if (v4.ip.ihl != 5 || v4.ip.frag_off & bpf_htons(0x3fff) ||
		    bpf_ntohs(v4.ip.tot_len) < offsetof(struct v4, more) + sizeof(struct tcphdr) ||
		    bpf_skb_load_bytes(skb, at, &v4, sizeof(v4)) || !is_valid(&v4.shim) ||
		    bpf_ntohs(v4.ip.tot_len) < sizeof(v4.ip) + v4.shim.length + sizeof(struct tcphdr) ||
		    bpf_skb_load_bytes(skb, at + sizeof(v4.ip) + v4.shim.length, &ports, sizeof(ports)))
			goto refuse;
		__builtin_memcpy(&tuple.ipv4.sport, &ports, sizeof(ports));
		route.family = AF_INET;
		route.tot_len = bpf_ntohs(v4.ip.tot_len);
		route.ipv4_src = v4.ip.saddr;
		route.ipv4_dst = v4.ip.daddr;
		if (!deliver(skb, &tuple, sizeof(tuple.ipv4), &v4.shim) && is_forwarded(skb, &route))
			return TC_ACT_UNSPEC;
		v4.ip.protocol = IPPROTO_TCP;
		v4.ip.tot_len = bpf_htons(bpf_ntohs(v4.ip.tot_len) - v4.shim.length);
		sum_up(&v4.ip);
		if (bpf_skb_adjust_room(skb, -(__s32)v4.shim.length, BPF_ADJ_ROOM_NET, 0))
			goto refuse;
		bpf_skb_store_bytes(skb, at, &v4.ip, sizeof(v4.ip), BPF_F_RECOMPUTE_CSUM);
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct v6 v6;

		if (bpf_skb_load_bytes(skb, at, &v6.ip, sizeof(v6.ip)) || v6.ip.version != 6)
			return TC_ACT_UNSPEC;
		__builtin_memcpy(tuple.ipv6.saddr, &v6.ip.saddr, 32);
		if (v6.ip.nexthdr == IPPROTO_TCP && has_option(skb, at + sizeof(v6.ip)) &&
		    !bpf_skb_load_bytes(skb, at + sizeof(v6.ip), &tuple.ipv6.sport, sizeof(ports)))
			deliver(skb, &tuple, sizeof(tuple.ipv6), 0);
		if (v6.ip.nexthdr != SHIM_PROTOCOL)
			return TC_ACT_UNSPEC;
		if (bpf_ntohs(v6.ip.payload_len) < sizeof(v6.shim) + sizeof(struct tcphdr) ||
		    bpf_skb_load_bytes(skb, at, &v6, sizeof(v6)) || !is_valid(&v6.shim) ||
		    bpf_skb_load_bytes(skb, at + sizeof(v6), &ports, sizeof(ports)))
			goto refuse;
		__builtin_memcpy(&tuple.ipv6.sport, &ports, sizeof(ports));
		route.family = AF_INET6;
		route.tot_len = bpf_ntohs(v6.ip.payload_len) + sizeof(v6.ip);
		__builtin_memcpy(route.ipv6_src, &v6.ip.saddr, 16);
		__builtin_memcpy(route.ipv6_dst, &v6.ip.daddr, 16);
		if (!deliver(skb, &tuple, sizeof(tuple.ipv6), &v6.shim) && is_forwarded(skb, &route))
			return TC_ACT_UNSPEC;
		v6.ip.nexthdr = IPPROTO_TCP;
		v6.ip.payload_len = bpf_htons(bpf_ntohs(v6.ip.payload_len) - sizeof(v6.shim));
		if (bpf_skb_adjust_room(skb, -(__s32)sizeof(v6.shim), BPF_ADJ_ROOM_NET, 0))
			goto refuse;
		bpf_skb_store_bytes(skb, at, &v6.ip, sizeof(v6.ip), BPF_F_RECOMPUTE_CSUM);
	} else {
		return TC_ACT_UNSPEC;
	}
	COUNT(shims_received);
	return TC_ACT_UNSPEC;
refuse:
	COUNT(shims_refused);
	return TC_ACT_UNSPEC;
}
