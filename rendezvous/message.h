/* message.h - encode and decode the messages between a node and the leader, which PROTOCOL.md lists. node.c
 * and leader.c build them, meet_wires.c sends them. No system calls.
 *
 * A frame is the length of its body (u32) and the body: a byte for the type, then the fields as they are in the structs
 * below, in native byte order. HELLO begins with a magic number and the version.
 * Ownership: a decoded message holds its fields by value; `state` points to the caller's struct.
 * Errors:    message_get: ERR_INVALID when the frame is malformed; *ret is then unspecified. */
#ifndef TK_RENDEZVOUS_MESSAGE_H
#define TK_RENDEZVOUS_MESSAGE_H

#include "common/jobkey.h"
#include "rendezvous/meeting.h"

#include <stdbool.h>

enum {
    MESSAGE_VERSION = 2,
    MESSAGE_ID_BYTES = 16,
    MESSAGE_NONCE_BYTES = JOBKEY_NONCE_BYTES,
    MESSAGE_ANSWER_BYTES = JOBKEY_PROOF_BYTES,
    MESSAGE_RUN_BYTES = 256, /* with its NUL */
    /* The longest frames: of a connection before WELCOME, of a node, of the leader. */
    MESSAGE_FIRST_BYTES = 400,
    MESSAGE_NODE_BYTES = 8 * 1024,
    MESSAGE_STATE_BYTES = 64 * 1024,
};

/* These numbers are sent. */
enum message_type {
    MESSAGE_HELLO = 1,
    MESSAGE_CHALLENGE,
    MESSAGE_ANSWER,
    MESSAGE_WELCOME,
    MESSAGE_REFUSED,
    MESSAGE_NODE,
    MESSAGE_HEARD,
    MESSAGE_STATE,
};

/* Why a leader refuses a connection; these numbers are sent. A launcher of another version reads REFUSED, too. */
enum message_refusal { REFUSED_RUN = 1, REFUSED_VERSION, REFUSED_AUTH, REFUSED_CROWDED };

struct message_hello {
    int64_t version;
    uint32_t number; /* of the connection: 1, 2, ... of this node */
    uint8_t auth;    /* 0: no key, 1: a key */
    uint8_t id[MESSAGE_ID_BYTES];
    uint8_t nonce[MESSAGE_NONCE_BYTES];
    char run_id[MESSAGE_RUN_BYTES];
    uint8_t pad[3]; /* 0, so that no unset bytes are sent */
};

struct message_challenge {
    uint8_t auth;
    uint8_t leader[MESSAGE_ID_BYTES];
    uint8_t nonce[MESSAGE_NONCE_BYTES];
    uint8_t answer[MESSAGE_ANSWER_BYTES]; /* the leader's proof */
};

struct message {
    enum message_type type;
    union {
        struct message_hello hello;
        struct message_challenge challenge;
        uint8_t answer[MESSAGE_ANSWER_BYTES]; /* ANSWER: the node's proof */
        int64_t ticket;                       /* WELCOME: the number by which states name the node */
        int64_t
            refusal;  /* REFUSED: enum message_refusal; the same in all versions, as HELLO's first fields */
        int64_t beat; /* HEARD: `beat` of the node's last NODE */
        struct meeting_node node;
    };
    const struct meeting_state *state; /* STATE */
};

/* Compute or check the proof that the sender of a CHALLENGE (the leader) or an ANSWER (the node) has the key.
 * It covers HELLO and the rest of CHALLENGE. Without a key the proof is zeros, and the check accepts any. */
void message_prove(const struct jobkey *key, enum message_type in, const struct message_hello *h,
                   const struct message_challenge *c, uint8_t proof[static MESSAGE_ANSWER_BYTES]);
bool message_proved(const struct jobkey *key, enum message_type in, const struct message_hello *h,
                    const struct message_challenge *c, const uint8_t proof[static MESSAGE_ANSWER_BYTES]);

/* Append a whole frame to *out. */
int message_put(const struct message *m, struct buf *out, struct err *err) MUST_CHECK;

/* Find a frame at the start of `bytes`. 1: it is complete, and *used is its length; 0: more bytes are needed;
 * -1: it is empty or longer than `max`: close the connection. */
int message_frame(const char *bytes, size_t len, size_t max, size_t *used);

/* Decode a complete frame. A STATE is stored in *state. */
int message_get(const char *frame, size_t len, struct message *ret, struct meeting_state *state,
                struct err *err) MUST_CHECK;

#endif
