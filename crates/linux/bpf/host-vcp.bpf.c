// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* VCP on an end host: the same program, with another law, the ECN field for a header, and another option. */
#define VCP
#include "host.bpf.c"
