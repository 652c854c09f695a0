// SPDX-License-Identifier: BSD-3-Clause
// Requests and responses between two machines, each with 64 bytes of which no two are the same:
//   exchange serve tcp|udp PORT          answers, until a request asks for the end
//   exchange ask tcp|udp HOST PORT COUNT asks COUNT times, 1000 times a second at most, then for the end

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

// Not the complement of the question: the exclusive or of both would be the same in every answer, and so its hash.
#define ANSWER(number) ((number) * 2246822519u)

struct message {
    uint32_t number, answer, end, seed[13];
};

static void nothing_else_delays(int s, int type) {
    int now = 1;
    if (type == SOCK_STREAM && setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now)) {
        err(1, "TCP_NODELAY");
    }
}

static int serve(int type, struct sockaddr_in *address) {
    int one = 1, listener = socket(AF_INET, type, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(listener, (struct sockaddr *)address, sizeof *address) ||
        (type == SOCK_STREAM && listen(listener, 1))) {
        err(1, "serve");
    }
    int s = type == SOCK_STREAM ? accept(listener, NULL, NULL) : listener;
    nothing_else_delays(s, type);
    struct message message;
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    while (recvfrom(s, &message, sizeof message, MSG_WAITALL, (struct sockaddr *)&from, &size) == sizeof message) {
        int end = message.end;
        message.answer = ANSWER(message.number);
        struct sockaddr *to = type == SOCK_STREAM ? NULL : (struct sockaddr *)&from;
        if (sendto(s, &message, sizeof message, 0, to, to ? size : 0) != sizeof message) {
            err(1, "answer");
        }
        if (end) {
            return 0;
        }
        size = sizeof from;
    }
    return 1;
}

static int ask(int type, struct sockaddr_in *address, uint32_t count) {
    int s = socket(AF_INET, type, 0), tries = 0;
    // The other machine may not be there yet.
    while (connect(s, (struct sockaddr *)address, sizeof *address)) {
        if (++tries == 600) {
            err(1, "connect");
        }
        close(s);
        usleep(100000);
        s = socket(AF_INET, type, 0);
    }
    nothing_else_delays(s, type);
    struct timeval second = { .tv_sec = 1 };
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    struct message sent = { .seed = { (uint32_t)time(NULL), (uint32_t)getpid() } }, got;
    for (uint32_t n = 1; n <= count; n++) {
        sent.number = n * 2654435761u;
        sent.end = n == count;
        for (tries = 0; tries < 60; tries++) {
            if (send(s, &sent, sizeof sent, 0) != sizeof sent && type == SOCK_STREAM) {
                err(1, "ask");
            }
            // A datagram may be lost, or the server not started yet: it is sent again, as another.
            if (recv(s, &got, sizeof got, MSG_WAITALL) == sizeof got && got.answer == ANSWER(sent.number)) {
                break;
            }
            sent.number++;
            usleep(100000);
        }
        if (tries == 60) {
            errx(1, "no answer to %u", n);
        }
        usleep(1000);
    }
    return 0;
}

int main(int argc, char **argv) {
    int serves = argc == 4 && !strcmp(argv[1], "serve");
    if (!serves && argc != 6) {
        errx(2, "usage");
    }
    int type = strcmp(argv[2], "tcp") ? SOCK_DGRAM : SOCK_STREAM;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[serves ? 3 : 4])) };
    if (!serves && !inet_aton(argv[3], &address.sin_addr)) {
        errx(2, "%s: no address", argv[3]);
    }
    return serves ? serve(type, &address) : ask(type, &address, atoi(argv[5]));
}
