/* reply.c - read the head of an HTTP request, and write the reply to it. */
#include "launcher/progress/reply.h"
#include "common/cleanup.h"

#include <string.h>

static const char JSON[] = "application/json", METRICS[] = "text/plain; version=0.0.4; charset=utf-8",
                  TEXT[] = "text/plain; charset=utf-8";

static void put(struct buf *out, const char *status, const char *type, const struct buf *body, bool head)
{
    struct err full;

    (void)buf_printf(out, &full,
                     "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
                     "%sConnection: close\r\n\r\n",
                     status, type, body->len, strncmp(status, "405", 3) == 0 ? "Allow: GET, HEAD\r\n" : "");
    if (!head)
        (void)buf_append(out, buf_str(body), body->len, &full);
}

static void refuse(struct buf *out, const char *status, bool head)
{
    cleanup_buf struct buf body = BUF_INIT(64);
    struct err full;

    (void)buf_printf(&body, &full, "%s\n", status);
    put(out, status, TEXT, &body, head);
}

/* "GET /progress HTTP/1.1" */
static void answer_line(struct sv line, const struct answer *a, struct buf *out)
{
    cleanup_buf struct buf body = BUF_INIT(ANSWER_BYTES);
    struct sv method = {0}, target = {0}, path = {0};

    if (!sv_next(&line, ' ', &method) || !sv_next(&line, ' ', &target) || !sv_starts(line, "HTTP/1.") ||
        !sv_starts(target, "/")) {
        refuse(out, "400 Bad Request", false);
        return;
    }
    const bool head = sv_eq(method, "HEAD");
    sv_next(&target, '?', &path);
    if (!head && !sv_eq(method, "GET"))
        refuse(out, "405 Method Not Allowed", false);
    else if (sv_eq(path, "/progress")) {
        answer_progress(a, &body);
        put(out, "200 OK", JSON, &body, head);
    } else if (sv_eq(path, "/metrics")) {
        answer_metrics(a, &body);
        put(out, "200 OK", METRICS, &body, head);
    } else
        refuse(out, "404 Not Found", head);
}

bool reply_make(struct sv request, const struct answer *a, struct buf *out)
{
    struct sv line = request;

    if (memmem(request.p, request.len, "\r\n\r\n", 4)) {
        line.len = (size_t)((const char *)memchr(request.p, '\r', request.len) - request.p);
        answer_line(line, a, out);
        return true;
    }
    if (request.len < REPLY_REQUEST_BYTES)
        return false;
    refuse(out, "431 Request Header Fields Too Large", false);
    return true;
}
