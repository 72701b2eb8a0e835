/* fuzz_watch.c - the ranks' watch. Byte 0, bit 0: the other bytes are sent to the watch (bit 1: by rank 1);
 * else by a watch to rank 1. Nobody is admitted without the run id, the watch answers only ranks, and a rank that got
 * nonsense has an error to report. */
#include "fuzz.h"

#include "collectives/watch.h"
#include "collectives/watch_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { WORLD = 3 };

static const char RUN_ID[PASS_RUN_ID_BYTES] = "the run's id";

static void join(int fds[2], const uint8_t *data, size_t size)
{
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    MUST(size == 0 || send(fds[1], data, size, 0) == (ssize_t)size);
    MUST(shutdown(fds[1], SHUT_WR) == 0);
}

static bool has_run_id(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + sizeof(RUN_ID) <= size; i++)
        if (memcmp(data + i, RUN_ID, sizeof(RUN_ID)) == 0)
            return true;
    return false;
}

static void to_watch(const uint8_t *data, size_t size, bool known)
{
    struct watch_slot *by_rank[WORLD] = {0}, *slots[WORLD];
    uint64_t reported[WORLD] = {0};
    struct watch_go *go = calloc(1, sizeof(*go) + WORLD * sizeof(*go->members));
    struct watch_table table = {.world = WORLD,
                                .n_awaiting = 1,
                                .go = go,
                                .by_rank = by_rank,
                                .reported = reported,
                                .slots = slots,
                                .max_slots = WORLD};
    int fds[2];

    MUST(go);
    memcpy(table.pass.run_id, RUN_ID, sizeof(RUN_ID));
    join(fds, data, size);
    struct watch_slot *t = watch_slot_new(fds[0], (const uint8_t[16]){0});
    slots[table.n_slots++] = t;
    if (known) {
        table.gone = true;
        by_rank[t->rank = 1] = t;
        table.n_registered = 1;
    }
    while (!t->broken)
        watch_slot_read(&table, t);
    MUST(t->said <= sizeof(t->in));
    MUST(known || watch_slot_unknown(t) || has_run_id(data, size));
    MUST(known || table.gone == false);
    if (t->answer_ms)
        watch_table_answer(&table, t);
    MUST(!watch_slot_unknown(t) || t->out.len < WATCH_SAID_BYTES); /* why it was refused */
    watch_table_drop(&table, 0);
    MUST(table.n_slots == 0 && !by_rank[1] && !watch_table_owes(&table));
    close(fds[1]);
    free(go);
}

static void to_rank(const uint8_t *data, size_t size)
{
    struct rank_member members[WORLD] = {0};
    bool left[WORLD] = {0};
    struct watch w = {.world = WORLD,
                      .proved = true,
                      .members = members,
                      .left = left,
                      .left_after = UINT64_MAX,
                      .in =
                          BUF_INIT(sizeof(struct watch_go) + sizeof(members) + 2 * WATCH_SAID_BYTES + 4096)};
    struct pod_layout layout;
    struct err err = {0};
    int fds[2];

    join(fds, data, size);
    w.fd = fds[0];
    watch_enter(&w, false);
    const int rc = watch_look(&w, "all_reduce", &err);
    MUST(w.fd < 0); /* the watch hung up */
    MUST(rc == 0 || (err.kind != ERR_NONE && err.msg[0]));
    MUST(rc < 0 || w.orphaned || w.failed.kind != ERR_NONE); /* told of a later call */
    MUST(w.left_rank >= 0 && w.left_rank < WORLD);
    MUST(strlen(w.answer) < sizeof(w.answer));
    if (w.met && pod_layout_make(&layout, members, WORLD, &err) == 0) {
        MUST(layout.n_pods >= 1 && layout.n_pods <= WORLD && layout.lanes >= 1);
        MUST(layout.lanes <= POD_LANES_MAX && layout.first[layout.n_pods] == WORLD);
        for (int i = 0; i < layout.n_pods; i++)
            MUST(layout.first[i] < layout.first[i + 1]);
        pod_layout_release(&layout);
    }
    buf_release(&w.in);
    close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 65536)
        return 0;
    if (data[0] & 1)
        to_watch(data + 1, size - 1, data[0] & 2);
    else
        to_rank(data + 1, size - 1);
    return 0;
}
