/* fuzz_reply.c - a request for a launcher's progress: it sends one whole reply after the end of the request's header, and
 * nothing before. */
#include "fuzz.h"

#include "launcher/progress/answer.h"

#include <string.h>

static const struct answer nothing = {.progress = {.now = {.step = 7}, .eta_ms = -1}, .straggler_rank = -1};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_buf struct buf whole = BUF_INIT(REPLY_BYTES), part = BUF_INIT(REPLY_BYTES);
    const char *bytes = (const char *)data;

    if (size > REPLY_REQUEST_BYTES)
        return 0;
    const bool answered = answer_reply(&nothing, (struct sv){bytes, size}, &whole);
    MUST(answered == (whole.len > 0) && (answered || size < REPLY_REQUEST_BYTES));
    if (!answered)
        return 0;
    MUST(strncmp(whole.data, "HTTP/1.1 ", 9) == 0 && strstr(whole.data, "\r\nConnection: close\r\n\r\n"));
    MUST(strlen(whole.data) == whole.len && whole.len < REPLY_BYTES);
    /* It comes with the end of the head, and what follows is not looked at. */
    const char *end = memmem(bytes, size, "\r\n\r\n", 4);
    if (!end)
        return 0;
    const size_t head = (size_t)(end - bytes) + 4;
    MUST(!answer_reply(&nothing, (struct sv){bytes, head - 1}, &part));
    MUST(answer_reply(&nothing, (struct sv){bytes, head}, &part));
    MUST(part.len == whole.len && memcmp(part.data, whole.data, whole.len) == 0);
    return 0;
}
