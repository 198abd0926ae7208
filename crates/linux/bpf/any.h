/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What user space tells the programs for any law of a port, and reads of them: src/router/any.rs. To be included behind
 * the law's own header.
 */
#pragma once

/* The TCP option in which a law's header rides: src/router/any.rs. */
struct form {
	__u32 tag;   /* of the header; 0: the law has none, and reads the ECN field at most */
	__u32 name;  /* OPTION_NAME */
	__u32 sizes; /* OPTION_SIZES */
	__u32 idle;  /* ms after which a flow is forgotten; 0: the law remembers none */
	__u8 fixed[OPTIONS_MAX]; /* bytes that are always so */
	__u8 from[OPTIONS_MAX];  /* for each byte, which byte of the words stands there, or FIXED */
};

/* Written by user space; the capacity also later. */
struct config {
	__u64 capacity;
	struct Told told;
	__u64 phase, second_phase;
	struct form form;
	char law[40];	   /* for user space alone, as are undo and which_law */
	__u32 encoding;
	__u32 link_header; /* bytes before IP: 14, or 0 on interfaces without Ethernet */
	__u32 undo;
	__u32 which_law;
};

struct port {
	struct bpf_spin_lock lock;
	__u32 settings; /* that the law listed */
	__u64 began;
	struct Report report;
	__u64 counts[COUNTS];
	__u64 now, backlog; /* of the last packet */
	__u64 capacity;
	struct Link link;
};
