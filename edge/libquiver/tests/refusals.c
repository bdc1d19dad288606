/* What libquiver answers to wrong calls: each is an error with words that say what and where. Arguments: an unused
 * directory, the deployment file, a token, a token of another deployment. Prints the first check that fails. */

#include <pthread.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "quiver.h"

static quiver_options options;
static quiver_edge *edge;

static void expect_at(int line, int code, int expected, const char *words)
{
    if (code == expected && (words == NULL || strstr(quiver_last_error(), words) != NULL))
        return;
    printf("line %d: code %d in place of %d, words: %s\n", line, code, expected, quiver_last_error());
    exit(1);
}
#define EXPECT(code, expected, words) expect_at(__LINE__, code, expected, words)

static int open_it(void)
{
    return quiver_open(QUIVER_ABI_VERSION, &options, &edge);
}

static void *wait_for_event(void *unused)
{
    (void)unused;
    quiver_event *event;
    int code;
    do {
        code = quiver_next_event(edge, &event, -1);
        if (code == QUIVER_OK)
            quiver_event_free(event);
    } while (code == QUIVER_OK);
    EXPECT(code, QUIVER_ERROR_CLOSED, "closed");
    return NULL;
}

static void wrong_versions_and_options(char **argv)
{
    EXPECT(quiver_check_version(QUIVER_ABI_VERSION), QUIVER_OK, NULL);
    EXPECT(quiver_check_version(QUIVER_ABI_VERSION + 1), QUIVER_ERROR_VERSION, "compiled for version 2");
    /* It reads nothing: the options of another version may be shorter. */
    EXPECT(quiver_open(0, (const quiver_options *)1, &edge), QUIVER_ERROR_VERSION, "quiver.h");
    EXPECT(quiver_open(QUIVER_ABI_VERSION, &options, NULL), QUIVER_ERROR_USAGE, "`edge` is NULL");
    EXPECT(quiver_open(QUIVER_ABI_VERSION, NULL, &edge), QUIVER_ERROR_USAGE, "`options` is NULL");
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "`data_dir` is NULL");
    options.data_dir = argv[1];
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "`leaders` is empty");
    static const char *leaders[] = {NULL};
    options.leaders = leaders, options.leaders_len = 1;
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "`leaders` is NULL");
    leaders[0] = "10.0.0.1:0";
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "10.0.0.1:0");
    leaders[0] = "/ip4/127.0.0.1/tcp/9";
    options.leaders_len = 65;
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "`leaders` has length 65");
    options.leaders_len = 1;
    options.passphrase_len = 1;
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "`passphrase` is NULL");
    options.passphrase = (const uint8_t *)"x";
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "no deployment");
    options.deployment = "/nonexistent/deployment.toml";
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "/nonexistent/deployment.toml");
    options.deployment = "\xff";
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "there is no file");
    options.deployment = argv[2];
    options.group = "\xff";
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "`group` is not UTF-8");
    options.group = NULL;
    if (edge != NULL)
        EXPECT(-1, 0, NULL);
}

static void wrong_tokens_and_passphrases(char **argv)
{
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "--token");
    options.token_file = "/nonexistent/edge.token";
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "/nonexistent/edge.token");
    options.token_file = argv[4];
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "another deployment");
    options.token_file = NULL;
    options.token = (const uint8_t *)"hello", options.token_len = 5;
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "the token given: this is not a token");
    options.token_file = argv[3];
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "both `token_file` and `token`");
    options.token = NULL, options.token_len = 0;
    options.passphrase = (const uint8_t *)"two\nlines", options.passphrase_len = 9;
    EXPECT(open_it(), QUIVER_ERROR_LOCKED, "more than one line");
    options.passphrase_len = 0;
    EXPECT(open_it(), QUIVER_ERROR_LOCKED, "the passphrase is empty");
    options.passphrase_len = 3;
    EXPECT(open_it(), QUIVER_ERROR_USAGE, "no address of a KGC");
    static const char *kgcs[] = {"/ip4/127.0.0.1/tcp/9"};
    options.kgcs = kgcs, options.kgcs_len = 1;
    EXPECT(open_it(), QUIVER_OK, NULL);
    quiver_edge *first = edge;
    EXPECT(open_it(), QUIVER_ERROR_BUSY, "in use");
    EXPECT(quiver_close(first), QUIVER_OK, NULL);
    quiver_free(first);
    options.passphrase_len = 2;
    EXPECT(open_it(), QUIVER_ERROR_LOCKED, "wrong passphrase");
    options.passphrase_len = 3;
}

static void wrong_calls(void)
{
    static uint8_t data[QUIVER_MAX_MESSAGE + 1], key[QUIVER_KEY_LEN];
    quiver_event *event;
    quiver_state state;
    EXPECT(open_it(), QUIVER_OK, NULL);
    EXPECT(quiver_status(edge, &state), QUIVER_OK, NULL);
    if (state.standing != QUIVER_STANDING_ENROLLING || state.has_epoch)
        EXPECT(-1, 0, NULL);
    EXPECT(quiver_status(edge, NULL), QUIVER_ERROR_USAGE, "`state` is NULL");
    EXPECT(quiver_join(edge, 300), QUIVER_ERROR_TIMED_OUT, "time");
    EXPECT(quiver_join(NULL, 0), QUIVER_ERROR_USAGE, "`edge` is NULL");
    EXPECT(quiver_next_event(edge, NULL, 0), QUIVER_ERROR_USAGE, "`event` is NULL");
    EXPECT(quiver_next_event(edge, &event, 0), QUIVER_ERROR_TIMED_OUT, "no event");
    EXPECT(quiver_send(edge, "chat", data, 1, true, 0), QUIVER_ERROR_NOT_JOINED, "join it first");
    EXPECT(quiver_send(edge, NULL, data, 1, true, 0), QUIVER_ERROR_USAGE, "`channel` is NULL");
    EXPECT(quiver_send(edge, "no spaces", data, 1, true, 0), QUIVER_ERROR_USAGE, "channel `no spaces`");
    EXPECT(quiver_send(edge, "chat", data, sizeof data, true, 0), QUIVER_ERROR_USAGE, "65537, more than 65536");
    EXPECT(quiver_export_key(edge, "k", key, 16, NULL, NULL, 0), QUIVER_ERROR_USAGE, "a key has 32 bytes");
    EXPECT(quiver_export_key(edge, "k", key, 32, NULL, NULL, 0), QUIVER_ERROR_NOT_JOINED, "join it first");
    EXPECT(quiver_leave(edge, 0), QUIVER_ERROR_NOT_JOINED, NULL);
    struct pollfd ready = {.fd = quiver_fd(edge), .events = POLLIN};
    EXPECT(poll(&ready, 1, 0), 0, NULL);
    EXPECT(quiver_fd(NULL), -1, "`edge` is NULL");
}

static void forked_and_closed(void)
{
    quiver_event *event;
    pid_t child = fork();
    if (child == 0) {
        EXPECT(quiver_join(edge, -1), QUIVER_ERROR_FORKED, "fork");
        quiver_free(edge);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(status, 0, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_event, NULL);
    usleep(100 * 1000);
    EXPECT(quiver_close(edge), QUIVER_OK, NULL);
    pthread_join(thread, NULL);
    struct pollfd ready = {.fd = quiver_fd(edge), .events = POLLIN};
    EXPECT(poll(&ready, 1, 0), 1, NULL);
    EXPECT(quiver_next_event(edge, &event, -1), QUIVER_ERROR_CLOSED, "closed");
    EXPECT(quiver_join(edge, -1), QUIVER_ERROR_CLOSED, "closed");
    EXPECT(quiver_send(edge, "chat", NULL, 0, true, -1), QUIVER_ERROR_CLOSED, "closed");
    EXPECT(quiver_flush(NULL, 0), QUIVER_ERROR_USAGE, "`edge` is NULL");
    EXPECT(quiver_flush(edge, 0), QUIVER_ERROR_CLOSED, "closed");
    EXPECT(quiver_close(edge), QUIVER_OK, NULL);
    quiver_free(edge);
    quiver_free(NULL);
    quiver_event_free(NULL);
}

int main(int argc, char **argv)
{
    if (argc != 5 || strlen(quiver_version()) == 0 || quiver_abi_version() != QUIVER_ABI_VERSION)
        return 2;
    wrong_versions_and_options(argv);
    wrong_tokens_and_passphrases(argv);
    wrong_calls();
    forked_and_closed();
    return 0;
}
