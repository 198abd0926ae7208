/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Servers that listen already. A part of host.bpf.c, whose configuration it shares. */
#pragma once

/* For sockets that listened before: on_listen was not called for them. Writes a byte for each that can
 * not be reached, which is all of them before Linux 6.12. */
struct bpf_iter_meta { void *seq; };

SEC("iter/tcp")
int cl_listeners(__u64 *ctx)
{
	struct bpf_iter_meta *meta = (struct bpf_iter_meta *)ctx[0];
	struct sock_common *common = (struct sock_common *)ctx[1];
	int flags = 0, one = 1;
	struct tcp_sock *tp;

	if (!common || common->skc_state != BPF_TCP_LISTEN)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	if (config.encoding & SHIM)
		bpf_setsockopt(tp, SOL_TCP, TCP_SAVE_SYN, &one, sizeof(one));
	bpf_getsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
	flags |= BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
	if (bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		bpf_seq_write(meta->seq, &one, 1);
	return 0;
}
