// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What tools/bench-linux runs a router's program behind: gives each packet of a test run the source address of the next of
 * FLOWS flows, and goes on in the program that the first place of `next` names. All flows come in turns, in an order that no
 * cache foresees.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define STEP 7919 /* a prime that divides no FLOWS of the benchmark */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} next SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} turn SEC(".maps");

SEC("tc")
int cl_flows(struct __sk_buff *skb)
{
	struct iphdr *ip = (void *)(long)skb->data + ETH_HLEN;
	__u32 key = 0, *flow = bpf_map_lookup_elem(&turn, &key);

	if (!flow || (void *)(ip + 1) > (void *)(long)skb->data_end)
		return TC_ACT_SHOT;
	*flow = (*flow + STEP) % FLOWS;
	ip->saddr = bpf_htonl(0x0a000000 + *flow);
	bpf_tail_call(skb, &next, 0);
	return TC_ACT_SHOT;
}

char _license[] SEC("license") = "GPL";
