/* fuzz_answers.c - a client of the store whose server says what it likes: each call ends with an answer or an error, and
 * a connection that has failed stays so. */
#include "fuzz.h"

#include "rendezvous/store_wire.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int call(struct store *s, int which, struct err *err)
{
    cleanup_buf struct buf out = BUF_INIT(STORE_VALUE_BYTES);
    int64_t number = 0;
    int rc;

    switch (which % 4) {
    case 0:
        rc = store_get(s, "key", &out, 0, err);
        MUST(out.len <= STORE_VALUE_BYTES);
        return rc;
    case 1:
        return store_add(s, "key", 1, &number, 0, err);
    case 2:
        return store_compare_set(s, "key", "a", 1, "b", 1, &out, 0, err);
    default:
        return store_wait_count(s, "key", 1, 0, err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct store s = {.where = "there:1",
                      .in = BUF_INIT(PROTOCOL_BODY_BYTES + 16 * 1024 + 8),
                      .out = BUF_INIT(PROTOCOL_BODY_BYTES + 16 * 1024 + 8)};
    int fds[2];

    if (size > 65536)
        return 0;
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    MUST(send(fds[1], data, size, 0) == (ssize_t)size && shutdown(fds[1], SHUT_WR) == 0);
    s.fd = fds[0];
    for (int i = 0; store_usable(&s) && i < 16; i++) {
        struct err err = {0};
        if (call(&s, i, &err) < 0)
            MUST(err.kind != ERR_NONE && err.msg[0]);
        MUST(s.out.len == 0 || !store_usable(&s));
    }
    close(fds[0]);
    close(fds[1]);
    buf_release(&s.in);
    buf_release(&s.out);
    return 0;
}
