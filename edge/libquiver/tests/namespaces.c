/* A fork in a PID namespace of its own has its parent's number, and no drone all the same. Arguments: an unused directory,
 * the deployment file, a token. Ends with 77 where no namespace can be made: that takes root. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "quiver.h"

enum { IMPOSSIBLE = 77 };

/* What the child ends with. */
static int ended(pid_t child)
{
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
        return 1;
    return WEXITSTATUS(status);
}

static int child_of_the_first(quiver_edge *edge)
{
    if (getpid() != 1) {
        printf("the child has number %d\n", (int)getpid());
        return 1;
    }
    int code = quiver_join(edge, -1);
    if (code != QUIVER_ERROR_FORKED)
        printf("code %d in the child, words: %s\n", code, quiver_last_error());
    quiver_free(edge);
    fflush(stdout);
    return code == QUIVER_ERROR_FORKED ? 0 : 1;
}

/* The process with number 1 of a namespace, which has the drone. */
static int first(char **argv)
{
    const char *leaders[] = {"/ip4/127.0.0.1/tcp/9"};
    quiver_options options = {.data_dir = argv[1], .passphrase = (const uint8_t *)"two", .passphrase_len = 3};
    options.deployment = argv[2], options.token_file = argv[3];
    options.leaders = leaders, options.leaders_len = 1;
    options.kgcs = leaders, options.kgcs_len = 1;
    quiver_edge *edge;
    if (quiver_open(QUIVER_ABI_VERSION, &options, &edge) != QUIVER_OK) {
        printf("it does not open: %s\n", quiver_last_error());
        return 1;
    }
    /* The next child is in a namespace within. */
    int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (own < 0 || unshare(CLONE_NEWPID) != 0)
        return IMPOSSIBLE;
    pid_t child = fork();
    if (child == 0)
        _exit(child_of_the_first(edge));
    if (setns(own, CLONE_NEWPID) != 0)
        return 1;
    int code = ended(child);
    quiver_free(edge);
    return code;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    if (unshare(CLONE_NEWPID) != 0)
        return IMPOSSIBLE;
    pid_t child = fork();
    if (child == 0) {
        int code = getpid() == 1 ? first(argv) : 1;
        fflush(stdout);
        _exit(code);
    }
    return ended(child);
}
