// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* P-XCP at a router's output port: the same program, with another law of the same headers. */
#define LAW_H "pxcp.h"
#include "router.bpf.c"
