/* err.h - errors by value: a kind that decides what the caller does, a code, and a one-line message.
 *
 * Ownership: the caller owns the struct, usually on its stack; it holds no pointers.
 * Errors:    a function that takes `struct err *err` returns -1 (or NULL) and fills it on failure, and leaves
 *            it untouched on success. `err` is never NULL.
 */
#ifndef TK_COMMON_ERR_H
#define TK_COMMON_ERR_H

#include <stdarg.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum err_kind {
    ERR_NONE = 0,
    ERR_INVALID,   /* the input is wrong: report it, do not retry */
    ERR_NOT_FOUND, /* it does not exist: often no problem */
    ERR_CONFLICT,  /* another process changed it first: read again, decide again */
    ERR_TRANSIENT, /* retry with backoff */
    ERR_TIMEOUT,   /* a deadline passed */
    ERR_PEER,      /* the peer closed the connection or is lost */
    ERR_FATAL,     /* this process cannot continue */
};

/* Room for a server's message of 1 KiB and the text before it. */
enum { ERR_MSG_BYTES = 1280 };

struct err {
    enum err_kind kind;
    int code; /* HTTP status, errno or 0, depending on who sets it */
    char msg[ERR_MSG_BYTES];
};

/* Fill *err, with code 0. A message that is too long is cut between two words and ends with "…". Always
 * returns -1, for `return err_set(...)`. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set, with `code` stored and ": <strerror(code)>" appended. */
int err_errno(struct err *err, enum err_kind kind, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* As err_set, ERR_FATAL with the code ENOMEM. */
int err_memory(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Whether err->code is the errno of a temporary shortage of memory, processes or descriptors: a retry may
 * succeed. */
bool err_is_shortage(const struct err *err);

/* Put "outer: " before the message; kind and code stay. Always returns -1. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "invalid", "transient", ...: a static string. */
const char *err_kind_name(enum err_kind kind);

#ifdef __cplusplus
}
#endif

#endif
