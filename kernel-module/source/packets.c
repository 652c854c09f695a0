// SPDX-License-Identifier: GPL-2.0
/*
 * Packets of TCP and UDP with chosen ports, as a device sends and receives
 * them: seen as AF_PACKET sockets see them, so in any kernel, whichever the
 * source. While off nothing is tapped. While on, the kernel makes a clone of
 * each packet that it sends, of whatever port, as it does for such a socket.
 */
#include <linux/bitmap.h>
#include <linux/errno.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/ipv6.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/preempt.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "packets.h"

#ifdef CONFIG_INET

/* Bytes of UDP data that are read: packet::WORDS of ../format/src/abi/packet.rs. */
#define DATA_BYTES	32

static DECLARE_BITMAP(kutrace_ports, 1 << 16);
static const struct kutrace_table *kutrace_packets_told;

/* The content of the headers, the start of the data after them, and the protocol. */
struct kutrace_place {
	struct kutrace_packet packet;
	int data;
	u8 protocol;
};

/*
 * Returns the end of the network layer's header; negative for any other packet,
 * or a later fragment.
 */
static int kutrace_packet_network(const struct sk_buff *skb, struct kutrace_place *to, int *end)
{
	int at = skb_network_offset(skb);
	struct ipv6hdr room6;
	struct iphdr room4;
	__be16 fragment;

	if (skb->protocol == htons(ETH_P_IP)) {
		const struct iphdr *ip = skb_header_pointer(skb, at, sizeof(room4), &room4);

		if (!ip || ip->version != 4 || ip->frag_off & htons(IP_OFFSET))
			return -1;
		to->protocol = ip->protocol;
		to->packet.addresses[0][2] = htonl(0xffff);
		to->packet.addresses[1][2] = htonl(0xffff);
		to->packet.addresses[0][3] = ip->saddr;
		to->packet.addresses[1][3] = ip->daddr;
		/* A packet that is larger than the field has 0 there, until it is segmented. */
		*end = ip->tot_len ? at + ntohs(ip->tot_len) : skb->len;
		return at + 4 * ip->ihl;
	}
	if (skb->protocol == htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip = skb_header_pointer(skb, at, sizeof(room6), &room6);

		if (!ip || ip->version != 6)
			return -1;
		to->protocol = ip->nexthdr;
		memcpy(to->packet.addresses[0], &ip->saddr, sizeof(ip->saddr));
		memcpy(to->packet.addresses[1], &ip->daddr, sizeof(ip->daddr));
		*end = ip->payload_len ? at + (int)sizeof(*ip) + ntohs(ip->payload_len) : skb->len;
		at = ipv6_skip_exthdr(skb, at + sizeof(*ip), &to->protocol, &fragment);
		return at >= 0 && fragment & htons(~0x7) ? -1 : at;
	}
	return -1;
}

/* Reads the headers; false for a packet that is not TCP or UDP with a chosen port. */
static bool kutrace_packet_read(const struct sk_buff *skb, struct kutrace_place *to)
{
	struct kutrace_packet *packet = &to->packet;
	int end, at = kutrace_packet_network(skb, to, &end);
	struct tcphdr room;
	const struct tcphdr *tcp;
	const struct udphdr *udp;

	if (at < 0)
		return false;
	switch (to->protocol) {
	case IPPROTO_TCP:
		tcp = skb_header_pointer(skb, at, sizeof(room), &room);
		if (!tcp || tcp->doff < 5)
			return false;
		packet->ports[0] = ntohs(tcp->source);
		packet->ports[1] = ntohs(tcp->dest);
		packet->flags = tcp_flag_byte(tcp);
		packet->sequence = ntohl(tcp->seq);
		to->data = at + 4 * tcp->doff;
		break;
	case IPPROTO_UDP:
		udp = skb_header_pointer(skb, at, sizeof(*udp), &room);
		if (!udp)
			return false;
		packet->ports[0] = ntohs(udp->source);
		packet->ports[1] = ntohs(udp->dest);
		/* The length of the whole datagram, where IP has fragmented it. */
		if (ntohs(udp->len) > sizeof(*udp))
			end = at + ntohs(udp->len);
		to->data = at + sizeof(*udp);
		break;
	default:
		return false;
	}
	packet->bytes = max(end - to->data, 0);
	return test_bit(packet->ports[0], kutrace_ports) || test_bit(packet->ports[1], kutrace_ports);
}

/*
 * A packet that goes through several devices is sent by the last and received
 * by the last, and a packet that is forwarded is not sent from here.
 */
static bool kutrace_packet_is_ours(const struct sk_buff *skb, const struct net_device *dev)
{
	if (skb->pkt_type == PACKET_OUTGOING)
		return !skb->skb_iif && list_empty(&dev->adj_list.lower);
	return skb->pkt_type == PACKET_HOST && !skb_vlan_tag_present(skb) &&
	       !rcu_access_pointer(dev->rx_handler);
}

static int kutrace_packet_seen(struct sk_buff *skb, struct net_device *dev,
			       struct packet_type *tap, struct net_device *first)
{
	bool sent = skb->pkt_type == PACKET_OUTGOING;
	struct kutrace_place place = { };
	u64 data[DATA_BYTES / sizeof(u64)] = { };

	/* Until 6.14 a tap gets the packets of all namespaces. */
	if (net_eq(dev_net(dev), tap->af_packet_net) &&
	    kutrace_packet_is_ours(skb, dev) && kutrace_packet_read(skb, &place)) {
		if (place.protocol == IPPROTO_UDP)
			skb_copy_bits(skb, place.data, data,
				      min3(place.packet.bytes, (u32)DATA_BYTES, (u32)max((int)skb->len - place.data, 0)));
		preempt_disable_notrace();
		kutrace_packets_told->flow(sent, &place.packet, data);
		preempt_enable_notrace();
	}
	consume_skb(skb);
	return 0;
}

static unsigned int kutrace_tap_id;

static int kutrace_tap_add(struct net *net)
{
	struct packet_type *tap = net_generic(net, kutrace_tap_id);

	tap->type = htons(ETH_P_ALL);
	tap->func = kutrace_packet_seen;
	tap->af_packet_net = net;
	dev_add_pack(tap);
	return 0;
}

static void kutrace_tap_remove(struct net *net)
{
	__dev_remove_pack(net_generic(net, kutrace_tap_id));
}

/* After pre_exit a grace period passes, in which calls of the tap still under way end. */
static struct pernet_operations kutrace_taps = {
	.init = kutrace_tap_add,
	.pre_exit = kutrace_tap_remove,
	.id = &kutrace_tap_id,
	.size = sizeof(struct packet_type),
};

static bool kutrace_packets_on;

int kutrace_packets_choose(u32 count, const u16 *ports)
{
	u32 n;

	bitmap_zero(kutrace_ports, 1 << 16);
	if (count == KUTRACE_PORTS_ALL)
		bitmap_fill(kutrace_ports, 1 << 16);
	else
		for (n = 0; n < count; n++)
			__set_bit(ports[n], kutrace_ports);
	return 0;
}

bool kutrace_packets_wanted(void)
{
	return !bitmap_empty(kutrace_ports, 1 << 16);
}

int kutrace_packets_begin(const struct kutrace_table *table)
{
	int ret;

	if (!kutrace_packets_wanted())
		return 0;
	kutrace_packets_told = table;
	ret = register_pernet_subsys(&kutrace_taps);
	kutrace_packets_on = !ret;
	return ret;
}

void kutrace_packets_end(void)
{
	if (kutrace_packets_on)
		unregister_pernet_subsys(&kutrace_taps);
	kutrace_packets_on = false;
}

#else /* without TCP/IP there are no packets */

int kutrace_packets_choose(u32 count, const u16 *ports)
{
	return count ? -EOPNOTSUPP : 0;
}

bool kutrace_packets_wanted(void)
{
	return false;
}

int kutrace_packets_begin(const struct kutrace_table *table)
{
	return 0;
}

void kutrace_packets_end(void)
{
}
#endif
