// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* XCP at a router's output port with several hardware queues: XCP's program, whose processors do not wait for each other. */
#define PERCPU
#define LAW_H "percpu.h"
#include "router.bpf.c"
