/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The header between IP and TCP, and what a SYN says of it. A part of host.bpf.c. */
#pragma once

/* Bits of the echo in a SYN and a SYN-ACK: the same file's Hello. With VCP it says that the side's
 * interface reads and writes codes. */
#define HELLO_SHIM 1
/* The side takes XCP-i's form of the header, too. */
#define HELLO_XCPI 2
#define HELLO (HELLO_SHIM | HELLO_XCPI)

/* crates/core/src/wire/xcp.rs, version 3 */
#define SHIM_PROTOCOL 253
#define STANDARD 0x31 /* version and format */
#define MINIMAL 0x32

struct shim {
	__u8 protocol, length, version_format, unused;
	__be32 x, rtt, reverse, delta;
};
_Static_assert(sizeof(struct shim) == DATA_OPTION, "takes the room of the option");

/* XCP-i: what stands behind the header of data, whose length and format then are others (docs/protocols/xcp-i.md, Bits). */
#define INTEROPERABLE 0x33

struct extension {
	__u8 ttl, flags;
	__be16 zero;
	__be32 last;
};
#define LENGTH_MAX (sizeof(struct shim) + sizeof(struct extension))
