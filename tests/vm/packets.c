// SPDX-License-Identifier: BSD-3-Clause
// Sends messages over loopback by UDP and TCP, IPv4 and IPv6, one at a time: COUNT of each kind that begin with the
// signature of the original's RPC library, then its kind and number, and after each one without a signature and one
// too short to be looked at.

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SIGNATURE = (int)0xd1c517e5, BYTES = 64, SHORT = 28 };

static void pass(int from, int to, const void *message, size_t bytes) {
    char seen[BYTES];
    if (send(from, message, bytes, 0) != (ssize_t)bytes) {
        err(1, "send");
    }
    if (recv(to, seen, bytes, MSG_WAITALL) != (ssize_t)bytes || memcmp(seen, message, bytes)) {
        err(1, "recv");
    }
}

static void talk(int kind, int from, int to, int count) {
    for (int n = 0; n < count; n++) {
        uint32_t message[BYTES / 4] = { SIGNATURE, kind << 16, n };
        pass(from, to, message, BYTES);
        pass(from, to, message, SHORT);
        message[0]++;
        pass(from, to, message, BYTES);
    }
}

// A pair of sockets that speak to each other.
static void connect_pair(int family, int type, int pair[2]) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = { .any.sa_family = family };
    socklen_t size = family == AF_INET ? sizeof address.v4 : sizeof address.v6;
    if (family == AF_INET) {
        address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
        address.v6.sin6_addr = in6addr_loopback;
    }
    int listener = socket(family, type, 0);
    pair[0] = socket(family, type, 0);
    int now = 1;
    if (listener < 0 || pair[0] < 0 || bind(listener, &address.any, size) ||
        getsockname(listener, &address.any, &size) || (type == SOCK_STREAM && listen(listener, 1)) ||
        connect(pair[0], &address.any, size)) {
        err(1, "socket");
    }
    pair[1] = type == SOCK_STREAM ? accept(listener, NULL, NULL) : listener;
    if (pair[1] < 0 || (type == SOCK_STREAM && setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &now, sizeof now))) {
        err(1, "accept");
    }
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1;
    for (int kind = 0; kind < 4; kind++) {
        int pair[2];
        connect_pair(kind & 1 ? AF_INET6 : AF_INET, kind & 2 ? SOCK_STREAM : SOCK_DGRAM, pair);
        talk(kind, pair[0], pair[1], count);
    }
    return 0;
}
