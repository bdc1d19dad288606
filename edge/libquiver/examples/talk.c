/* A talk in a group: joins it, sends each line of standard input, and prints what others send.
 *
 *   cc -I edge/libquiver edge/libquiver/examples/talk.c -L target/release -lquiver -o talk
 *   QUIVER_PASSPHRASE=… ./talk DATA_DIR LEADER DEPLOYMENT TOKEN_FILE [KGC]      at the first start
 *   QUIVER_PASSPHRASE=… ./talk DATA_DIR LEADER                                  later
 *
 * At the end of the input it leaves the group. */

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quiver.h"

enum { MINUTE = 60 * 1000 };

static int fail(const char *what, int code)
{
    fprintf(stderr, "talk: %s: %s (error %d)\n", what, quiver_last_error(), code);
    return 1;
}

/* What others send must not drive the terminal. */
static void print_content(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        putchar(data[i] < 0x80 && !isprint(data[i]) ? '.' : data[i]);
    putchar('\n');
}

static void print_event(const quiver_event *event)
{
    switch (event->kind) {
    case QUIVER_EVENT_ENROLLED:
        printf("enrolled as %s\n", event->name);
        break;
    case QUIVER_EVENT_EPOCH:
        printf("epoch: term %llu, counter %llu\n", (unsigned long long)event->term,
               (unsigned long long)event->counter);
        break;
    case QUIVER_EVENT_MESSAGE:
        if (event->is_signed)
            printf("[%s] %s: ", event->channel, event->name);
        else
            printf("[%s] slot %u, as it claims: ", event->channel, event->slot);
        print_content(event->data, event->data_len);
        break;
    case QUIVER_EVENT_REFUSED:
        printf("refused: %s\n", event->reason);
        break;
    case QUIVER_EVENT_EVICTED:
        printf("evicted\n");
        break;
    case QUIVER_EVENT_LEFT:
        printf("left the group\n");
        break;
    default: /* connections, and events of later versions */
        break;
    }
    fflush(stdout);
}

/* Prints all events that are queued. */
static int take_events(const quiver_edge *edge)
{
    for (;;) {
        quiver_event *event;
        int code = quiver_next_event(edge, &event, 0);
        if (code != QUIVER_OK)
            return code == QUIVER_ERROR_TIMED_OUT ? QUIVER_OK : code;
        print_event(event);
        quiver_event_free(event);
    }
}

/* Sends the lines of standard input until it ends. */
static int talk(const quiver_edge *edge)
{
    struct pollfd ready[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                              {.fd = quiver_fd(edge), .events = POLLIN}};
    static char text[4096];
    size_t len = 0;
    while (poll(ready, 2, -1) >= 0) {
        int code = QUIVER_OK;
        if (ready[1].revents != 0 && (code = take_events(edge)) != QUIVER_OK)
            return fail("events", code);
        if (ready[0].revents == 0)
            continue;
        ssize_t got = read(STDIN_FILENO, text + len, sizeof text - len);
        if (got <= 0)
            return 0;
        len += (size_t)got;
        char *end;
        while ((end = memchr(text, '\n', len)) != NULL || len == sizeof text) {
            size_t line = end != NULL ? (size_t)(end - text) : len;
            code = quiver_send(edge, "chat", (const uint8_t *)text, line, true, MINUTE);
            if (code != QUIVER_OK)
                fail("not sent", code);
            size_t used = end != NULL ? line + 1 : line;
            memmove(text, text + used, len -= used);
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    const char *passphrase = getenv("QUIVER_PASSPHRASE");
    if (passphrase == NULL) {
        fprintf(stderr, "talk: QUIVER_PASSPHRASE is not set: it opens the drone's state\n");
        return 2;
    }
    if (argc != 3 && argc != 5 && argc != 6) {
        fprintf(stderr, "usage: QUIVER_PASSPHRASE=... talk DATA_DIR LEADER [DEPLOYMENT TOKEN_FILE [KGC]]\n");
        return 2;
    }
    const char *leaders[] = {argv[2]};
    const char *kgcs[] = {argc > 5 ? argv[5] : NULL};
    quiver_options options = {
        .data_dir = argv[1],
        .passphrase = (const uint8_t *)passphrase,
        .passphrase_len = strlen(passphrase),
        .leaders = leaders,
        .leaders_len = 1,
        .deployment = argc > 3 ? argv[3] : NULL,
        .token_file = argc > 4 ? argv[4] : NULL,
        .kgcs = kgcs,
        .kgcs_len = argc > 5 ? 1 : 0,
    };
    quiver_edge *edge;
    int code = quiver_open(QUIVER_ABI_VERSION, &options, &edge);
    if (code != QUIVER_OK)
        return fail("open", code);
    int status = 0;
    if ((code = quiver_join(edge, MINUTE)) != QUIVER_OK) {
        status = fail("join", code);
    } else {
        uint8_t key[QUIVER_KEY_LEN];
        uint64_t term, counter;
        code = quiver_export_key(edge, "talk", key, sizeof key, &term, &counter, MINUTE);
        if (code == QUIVER_OK)
            printf("joined, with a key for this application\n");
        memset(key, 0, sizeof key);
        fflush(stdout);
        status = talk(edge);
        if (status == 0 && (code = quiver_leave(edge, MINUTE)) != QUIVER_OK)
            status = fail("leave", code);
        take_events(edge);
    }
    quiver_free(edge);
    return status;
}
