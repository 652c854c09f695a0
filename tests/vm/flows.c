// SPDX-License-Identifier: BSD-3-Clause
// Loses packets of TCP over loopback: ROUNDS times a client sends 100 bytes to a server whose socket drops all that
// arrives, until they have been sent again. How often either has sent something again, by the kernel: `again=N`.

#include <arpa/inet.h>
#include <err.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 100 };

static struct tcp_info told(int s) {
    struct tcp_info info = { 0 };
    socklen_t size = sizeof info;
    if (getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &size)) {
        err(1, "TCP_INFO");
    }
    return info;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(4712) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (listener < 0 || client < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1) ||
        connect(client, (struct sockaddr *)&address, sizeof address)) {
        err(1, "connect");
    }
    int server = accept(listener, NULL, NULL);
    struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog drop = { 1, &none };
    for (int n = 0; n < rounds; n++) {
        char data[BYTES];
        memset(data, n, BYTES);
        unsigned before = told(client).tcpi_total_retrans;
        if (server < 0 || setsockopt(server, SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof drop) ||
            send(client, data, BYTES, 0) != BYTES) {
            err(1, "send");
        }
        while (told(client).tcpi_total_retrans == before) {
            usleep(1000);
        }
        if (setsockopt(server, SOL_SOCKET, SO_DETACH_FILTER, &one, sizeof one) ||
            recv(server, data, BYTES, MSG_WAITALL) != BYTES) {
            err(1, "recv");
        }
        // The answer, by which the client learns that all has arrived.
        if (send(server, data, 1, 0) != 1 || recv(client, data, 1, MSG_WAITALL) != 1) {
            err(1, "answer");
        }
    }
    printf("again=%u\n", told(client).tcpi_total_retrans + told(server).tcpi_total_retrans);
    return 0;
}
