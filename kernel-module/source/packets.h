/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets of chosen ports, in addition to a source's events.
 */
#ifndef KUTRACE_PACKETS_H
#define KUTRACE_PACKETS_H

#include <linux/types.h>

#include "source.h"

/* The content of the headers; layout of Packet in ../format/src/abi/packet.rs. */
struct kutrace_packet {
	/* The sender's and the receiver's, as they are in a packet; IPv4 addresses are mapped. */
	u32 addresses[2][4];
	u16 ports[2];
	u32 bytes;
	/* TCP only, never 0. */
	u32 flags;
	u32 sequence;
};

/* PORTS_ALL of ../format/src/abi/command.rs. */
#define KUTRACE_PORTS_ALL	U32_MAX

/* Chooses the ports of the next trace. The control lock is held. */
int kutrace_packets_choose(u32 count, const u16 *ports);
bool kutrace_packets_wanted(void);
/* Both may sleep; on return from the second no CPU is in the table's functions. */
int kutrace_packets_begin(const struct kutrace_table *table);
void kutrace_packets_end(void);

#endif
