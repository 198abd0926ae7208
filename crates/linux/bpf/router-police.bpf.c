// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* XCP at a router's output port behind a policer of senders that lie or do not listen. */
#define LAW_H "police.h"
#define POLICE
#include "router.bpf.c"
