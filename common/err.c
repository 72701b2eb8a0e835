/* err.c - format and wrap error values. */
#include "common/err.h"

#include "common/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Bytes of a message reserved for the system's reason, so that a long path does not push it out. */
enum { REASON_BYTES = 64 };

__attribute__((format(printf, 4, 0))) static void fill(struct err *err, enum err_kind kind, int code,
                                                       const char *fmt, va_list ap)
{
    err->kind = kind;
    err->code = code;
    int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    text_ellipsis(err->msg, sizeof(err->msg), n > 0 ? (size_t)n : 0);
}

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fill(err, kind, 0, fmt, ap);
    va_end(ap);
    return -1;
}

int err_errno(struct err *err, enum err_kind kind, int code, const char *fmt, ...)
{
    va_list ap;
    char what[ERR_MSG_BYTES - REASON_BYTES];
    int kept = errno;

    va_start(ap, fmt);
    int n = vsnprintf(what, sizeof(what), fmt, ap);
    text_ellipsis(what, sizeof(what), n > 0 ? (size_t)n : 0);
    va_end(ap);
    errno = code;
    err_set(err, kind, "%s: %m", what); /* strerror_r differs between C libraries */
    errno = kept;
    err->code = code;
    return -1;
}

int err_memory(struct err *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fill(err, ERR_FATAL, ENOMEM, fmt, ap);
    va_end(ap);
    return -1;
}

bool err_is_shortage(const struct err *err)
{
    static const int codes[] = {EAGAIN, ENOMEM, EMFILE, ENFILE, ENOBUFS};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (err->code == codes[i])
            return true;
    return false;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    va_list ap;
    char inner[ERR_MSG_BYTES];
    char outer[ERR_MSG_BYTES];

    memcpy(inner, err->msg, sizeof(inner));
    va_start(ap, fmt);
    vsnprintf(outer, sizeof(outer), fmt, ap);
    va_end(ap);
    int n = snprintf(err->msg, sizeof(err->msg), "%.*s: %.*s", ERR_MSG_BYTES, outer, ERR_MSG_BYTES, inner);
    text_ellipsis(err->msg, sizeof(err->msg), n > 0 ? (size_t)n : 0);
    return -1;
}

const char *err_kind_name(enum err_kind kind)
{
    switch (kind) {
    case ERR_NONE:
        return "none";
    case ERR_INVALID:
        return "invalid";
    case ERR_NOT_FOUND:
        return "not found";
    case ERR_CONFLICT:
        return "conflict";
    case ERR_TRANSIENT:
        return "transient";
    case ERR_TIMEOUT:
        return "timeout";
    case ERR_PEER:
        return "peer lost";
    case ERR_FATAL:
        return "fatal";
    }
    return "unknown";
}
