// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SCONE at a router's output port: the program for any link law, with the law's header in packets of QUIC. */
#define HEADER_H "scone.h"
#include "router-law.bpf.c"
