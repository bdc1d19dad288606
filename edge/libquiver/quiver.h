/* libquiver: a drone of a Quiver group within a program.
 *
 * Generated from edge/libquiver/src: cargo run -p libquiver --example header > edge/libquiver/quiver.h
 * Guide: docs/libraries.md. Example: edge/libquiver/examples/talk.c.
 *
 * `timeout_ms`: a call waits that long at most; less than 0 is for ever, 0 does not wait.
 * Do not cancel a thread (pthread_cancel) that is in a call: the process aborts, because the cancellation unwinds the
 * stack, which the library lets nothing do across its border. Disable cancellation around calls
 * (pthread_setcancelstate), or end them by a time limit or by quiver_close from another thread. */

#ifndef QUIVER_H
#define QUIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Version of the interface that this header describes: for `quiver_open`.
#define QUIVER_ABI_VERSION 1

// The longest message, in bytes.
#define QUIVER_MAX_MESSAGE 65536

// Length of an exported key, in bytes.
#define QUIVER_KEY_LEN 32

// Done.
#define QUIVER_OK 0

// It failed for a reason that has no code of its own.
#define QUIVER_ERROR_FAILED 1

// An argument, an option or a file that was given is wrong.
#define QUIVER_ERROR_USAGE 2

// A service understood and refused.
#define QUIVER_ERROR_REFUSED 3

// Another process or another drone of this one uses the data directory.
#define QUIVER_ERROR_BUSY 5

// Wrong passphrase or key, or a file that others may read.
#define QUIVER_ERROR_LOCKED 6

// The state file is damaged, or of another role or deployment.
#define QUIVER_ERROR_BAD_STATE 7

// Not done in the time given.
#define QUIVER_ERROR_TIMED_OUT 8

// The drone is not, or not yet, in step with its group.
#define QUIVER_ERROR_NOT_JOINED 9

// The drone was closed.
#define QUIVER_ERROR_CLOSED 10

// The library has another version than the header that the application was compiled with.
#define QUIVER_ERROR_VERSION 11

// The process is a fork of the one that opened the drone.
#define QUIVER_ERROR_FORKED 12

// The library has panicked: a bug.
#define QUIVER_ERROR_PANICKED 13

// The KGC has issued this drone's key: `name` is the drone's.
#define QUIVER_EVENT_ENROLLED 1

// There is a connection with a `service`.
#define QUIVER_EVENT_CONNECTED 2

// A connection with a `service` is lost; a leader is dialled again.
#define QUIVER_EVENT_DISCONNECTED 3

// The key of the epoch `term`, `counter` with this `digest` is in use; this drone has the `slot`. The first
// one says that the drone has joined.
#define QUIVER_EVENT_EPOCH 4

// A message with `data` on a `channel`. If `is_signed`, the drone `name` has signed it, which is a leader if
// `is_leader`; else some member sent it, which claims the `slot`.
#define QUIVER_EVENT_MESSAGE 5

// A `service` refuses this drone for a `reason`. If `is_transient`, the same request may succeed later.
#define QUIVER_EVENT_REFUSED 6

// The drone has left the group, as it was told.
#define QUIVER_EVENT_LEFT 7

// The drone was evicted from the group.
#define QUIVER_EVENT_EVICTED 8

// The leader `name` has signed two headers for one epoch, and is refused for good.
#define QUIVER_EVENT_LEADER_REFUSED 9

// A key generation centre.
#define QUIVER_SERVICE_KGC 1

// A leader or a deputy.
#define QUIVER_SERVICE_LEADER 2

// It asks the KGC for its key.
#define QUIVER_STANDING_ENROLLING 0

// It asks to be admitted, or is not in step with the group: it neither sends nor receives.
#define QUIVER_STANDING_JOINING 1

// It is a member, in step with the group.
#define QUIVER_STANDING_MEMBER 2

// It has left, as it was told.
#define QUIVER_STANDING_LEFT 3

// It was evicted.
#define QUIVER_STANDING_EVICTED 4

// The KGC has revoked it: it is not admitted again under its key.
#define QUIVER_STANDING_REVOKED 5

// A drone.
typedef struct quiver_edge quiver_edge;

// Options of a drone. Set all to zero, then what is needed.
typedef struct quiver_options {
  // Directory of the drone's state; made at the first start.
  const char *data_dir;
  // The passphrase of the state file. Either this or `key_file`.
  const uint8_t *passphrase;
  // Its length.
  size_t passphrase_len;
  // File with a key of 64 hex digits (mode 0600), or NULL.
  const char *key_file;
  // The public deployment file; needed at the first start, else NULL.
  const char *deployment;
  // File of the token to enrol with (mode 0600); needed at the first start, else NULL.
  const char *token_file;
  // Content of that file, in place of it, or NULL.
  const uint8_t *token;
  // Its length.
  size_t token_len;
  // The group to join. NULL: the one joined before, or the only one in the token.
  const char *group;
  // Multiaddresses of the group's leader and its deputies: at least one.
  const char *const *leaders;
  // How many.
  size_t leaders_len;
  // Multiaddresses of KGCs, in place of those in the deployment file, or NULL.
  const char *const *kgcs;
  // How many.
  size_t kgcs_len;
  // How long enrolling may take, in milliseconds; 0 for a minute.
  uint32_t enrol_timeout_ms;
} quiver_options;

// An event. Which fields count is said beside the `QUIVER_EVENT_…` of its `kind`; all others are zero, and
// strings empty. Everything in it is valid until `quiver_event_free`.
typedef struct quiver_event {
  // One of `QUIVER_EVENT_…`; an application ignores those that it does not know.
  uint32_t kind;
  // One of `QUIVER_SERVICE_…`.
  uint32_t service;
  // Slot of a member.
  uint32_t slot;
  // Whether the sender has signed the message.
  bool is_signed;
  // Whether the sender is a leader.
  bool is_leader;
  // Whether the same request may succeed later.
  bool is_transient;
  // Term of the epoch: 65,536 times its round, plus the ordinal of the leader that opened it. The programs write round 3,
  // ordinal 1 and counter 17 as `3-1.17`.
  uint64_t term;
  // Counter of the epoch.
  uint64_t counter;
  // D of the epoch, equal at all members.
  uint8_t digest[32];
  // Name of a drone.
  const char *name;
  // The application's channel.
  const char *channel;
  // Why.
  const char *reason;
  // The message's content.
  const uint8_t *data;
  // Its length.
  size_t data_len;
} quiver_event;

// State of a drone.
typedef struct quiver_state {
  // One of `QUIVER_STANDING_…`.
  uint32_t standing;
  // Its slot, if it has an epoch.
  uint32_t slot;
  // Leaders and deputies that it has a connection with.
  uint32_t leaders;
  // Whether it holds an epoch: the fields that follow count.
  bool has_epoch;
  // Term of the epoch: 65,536 times its round, plus the ordinal of the leader that opened it. The programs write round 3,
  // ordinal 1 and counter 17 as `3-1.17`.
  uint64_t term;
  // Counter of the epoch.
  uint64_t counter;
  // End of the key's validity, seconds since 1970; 0 if that is not known.
  uint64_t valid_until;
  // Messages that were dropped because the application took none for too long.
  uint64_t dropped;
  // D of the epoch.
  uint8_t digest[32];
  // Its name; empty before it has enrolled.
  char name[65];
  // The group that it is in or wants to be in; empty before that is known.
  char group[65];
} quiver_state;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library, for people: `0.1.0`.
const char *quiver_version(void);

// The version of the interface that the library has: QUIVER_ABI_VERSION of its own header.
uint32_t quiver_abi_version(void);

// Whether the library has the interface of this version. Pass QUIVER_ABI_VERSION. `quiver_open` checks it,
// too.
int32_t quiver_check_version(uint32_t abi_version);

// Reason of the last failure on this thread; empty if there was none. Valid until the next one
// on this thread.
const char *quiver_last_error(void);

// Opens the state in the data directory, and starts the drone: it enrols if it has not, joins its group and
// stays in it. Returns once the state file is open and everything that was given fits together; it does not
// wait for any service. `abi_version`: QUIVER_ABI_VERSION.
//
// # Safety
// `options` and every pointer in it is NULL or points to what is described; `edge` to room for a pointer.
int32_t quiver_open(uint32_t abi_version,
                    const struct quiver_options *options,
                    struct quiver_edge **edge);

// Waits until the drone is a member of its group, in step with it. One that has left joins again.
//
// # Safety
// `edge` is NULL or a drone that was opened and not freed; so in all functions below.
int32_t quiver_join(const struct quiver_edge *edge, int64_t timeout_ms);

// Gives the next event, to be freed with `quiver_event_free`; QUIVER_ERROR_TIMED_OUT and NULL if there is
// none in this time. After the last one, the error says why there will be no more.
//
// # Safety
// As `quiver_join`; `event` is NULL or points to room for a pointer.
int32_t quiver_next_event(const struct quiver_edge *edge,
                          struct quiver_event **event,
                          int64_t timeout_ms);

// Frees an event, and erases its content. NULL is fine.
//
// # Safety
// `event` is NULL, or from `quiver_next_event` and not freed.
void quiver_event_free(struct quiver_event *event);

// Sends `data_len` bytes, at most QUIVER_MAX_MESSAGE, to the group on a channel of the application's (1 to 64
// characters out of `A-Z a-z 0-9 . _ -`); signed if the others shall know who sent it. Returns once the
// message was handed to the connection of the leader, without waiting for an answer: that is `quiver_flush`.
// Members do not acknowledge messages.
//
// # Safety
// As `quiver_join`; `channel` is NULL or a string, `data` NULL or so many bytes.
int32_t quiver_send(const struct quiver_edge *edge,
                    const char *channel,
                    const uint8_t *data,
                    size_t data_len,
                    bool is_signed,
                    int64_t timeout_ms);

// Waits until the leader has answered after every message that was sent since the last call: one round trip,
// at most five seconds, however many messages. QUIVER_ERROR_FAILED if some of them may be lost.
//
// # Safety
// As `quiver_join`.
int32_t quiver_flush(const struct quiver_edge *edge,
                     int64_t timeout_ms);

// Writes a key of QUIVER_KEY_LEN bytes that every member that is in step derives under this name (1 to 64
// characters out of `A-Z a-z 0-9 . _ -`), another one in each epoch, and the epoch's term and counter, where
// these are not NULL. Erase the key after use.
//
// # Safety
// As `quiver_join`; `name` is NULL or a string, `key` NULL or `key_len` bytes, `term` and `counter` NULL or
// room for a number.
int32_t quiver_export_key(const struct quiver_edge *edge,
                          const char *name,
                          uint8_t *key,
                          size_t key_len,
                          uint64_t *term,
                          uint64_t *counter,
                          int64_t timeout_ms);

// Writes how the drone is doing.
//
// # Safety
// As `quiver_join`; `state` is NULL or points to room for a state.
int32_t quiver_status(const struct quiver_edge *edge, struct quiver_state *state);

// A file descriptor that is readable while an event is queued, and once the drone has ended: for `poll` and
// the like. It is not to be read, written or closed, and valid until `quiver_free`. -1 for NULL.
//
// # Safety
// As `quiver_join`.
int32_t quiver_fd(const struct quiver_edge *edge);

// Leaves the group, and waits until the leader has made a key without this drone. `quiver_join` joins again.
//
// # Safety
// As `quiver_join`.
int32_t quiver_leave(const struct quiver_edge *edge,
                     int64_t timeout_ms);

// Stops the drone: it stays a member, and the next start goes on. Takes two seconds at most, after which the
// data directory is free. Calls that wait, and later ones, fail with QUIVER_ERROR_CLOSED.
//
// # Safety
// As `quiver_join`.
int32_t quiver_close(const struct quiver_edge *edge);

// Closes the drone, if that was not done, and frees it. NULL is fine.
//
// # Safety
// `edge` is NULL or a drone that was opened and not freed, and no other call with it is under way or follows.
void quiver_free(struct quiver_edge *edge);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* QUIVER_H */
