/* apistatus.c - map an HTTP status and a Status object to an error kind. */
#include "kube/apistatus.h"

#include "common/json.h"
#include "common/text.h"

#include <string.h>

enum { SENTENCE_BYTES = 1024 + 1 };

static const char NO_MESSAGE[] = "no message from the server";

static enum err_kind kind_of(int code)
{
    switch (code) {
    case 400:
    case 403:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422:
        return ERR_INVALID;
    case 404:
        return ERR_NOT_FOUND;
    case 409:
        return ERR_CONFLICT;
    default:
        return ERR_TRANSIENT;
    }
}

/* Where one code has two meanings, the Status object's reason decides. */
static enum kube_reason reason_of(int code, const char *word)
{
    if (word && code == 409 && strcmp(word, "AlreadyExists") == 0)
        return KUBE_REASON_ALREADY_EXISTS;
    if (code == 410 || (word && (strcmp(word, "Expired") == 0 || strcmp(word, "Gone") == 0)))
        return KUBE_REASON_EXPIRED;
    return KUBE_REASON_OTHER;
}

/* Use the first `len` bytes of the message. */
static int fill(int code, const char *word, const char *message, size_t len, struct kube_status *ret,
                struct err *err)
{
    char sentence[SENTENCE_BYTES];

    snprintf(sentence, sizeof(sentence), "%.*s", (int)len, message);
    text_ellipsis(sentence, sizeof(sentence), len);
    ret->code = code;
    ret->reason = reason_of(code, word);
    err_set(err, kind_of(code), "%s (HTTP %d%s%.40s)", sentence, code, word ? " " : "", word ? word : "");
    err->code = code;
    return -1;
}

static int64_t bounded(int64_t ms)
{
    return ms < KUBE_RETRY_AFTER_MAX_MS ? ms : KUBE_RETRY_AFTER_MAX_MS;
}

/* Status.details.retryAfterSeconds, for answers without the header. */
static int64_t details_retry_ms(const cJSON *status)
{
    int64_t s = json_i64(json_child(status, "details"), "retryAfterSeconds", 0);

    return s > 0 ? bounded(s < KUBE_RETRY_AFTER_MAX_MS ? s * 1000 : s) : -1;
}

static int fill_from_object(const cJSON *status, int code, int64_t retry_after_ms, struct kube_status *ret,
                            struct err *err)
{
    const char *message = json_str(status, "message");

    if (!message)
        message = NO_MESSAGE;
    ret->retry_after_ms = retry_after_ms >= 0 ? bounded(retry_after_ms) : details_retry_ms(status);
    return fill(code, json_str(status, "reason"), message, strlen(message), ret, err);
}

int kube_status_object(const cJSON *status, struct kube_status *ret, struct err *err)
{
    int64_t code = json_i64(status, "code", 0);

    return fill_from_object(status, code >= 100 && code <= 599 ? (int)code : 500, -1, ret, err);
}

/* A plain-text body, as proxies and unknown paths return it: its first line is the message. */
static int fill_from_text(const struct kube_http_response *r, struct kube_status *ret, struct err *err)
{
    size_t n = 0;

    while (n < r->body.len && (unsigned char)r->body.p[n] >= 0x20)
        n++;
    ret->retry_after_ms = bounded(r->retry_after_ms);
    return n ? fill(r->status, NULL, r->body.p, n, ret, err)
             : fill(r->status, NULL, NO_MESSAGE, strlen(NO_MESSAGE), ret, err);
}

/* The code is that of the HTTP answer, not the one in the body: a proxy may have replaced it. */
int kube_status_check(const struct kube_http_response *r, struct kube_status *ret, struct err *err)
{
    struct err ignored;

    if (r->status >= 200 && r->status <= 299)
        return 0;
    cleanup_json cJSON *status = r->body.len ? json_parse(r->body.p, r->body.len, &ignored) : NULL;
    const char *kind = json_str(status, "kind");
    return kind && strcmp(kind, "Status") == 0
               ? fill_from_object(status, r->status, r->retry_after_ms, ret, err)
               : fill_from_text(r, ret, err);
}
