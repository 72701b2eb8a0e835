/* watch_slot.c - one connection of the watch: read messages, queue and write messages. */
#include "collectives/watch_table.h"
#include "common/clock.h"
#include "common/memory.h"
#include "rendezvous/net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { OWED_MAX = 1 << 20 }; /* bytes queued for a rank that does not read */

struct watch_slot *watch_slot_new(int fd, const uint8_t addr[static 16])
{
    struct watch_slot *t = memory_must(calloc(1, sizeof(*t)));

    *t = (struct watch_slot){
        .fd = fd, .rank = -1, .came_ms = clock_mono_ms(), .out = (struct buf)BUF_INIT(OWED_MAX)};
    memcpy(t->addr, addr, sizeof(t->addr));
    net_tune(fd, NET_LOST_MS, true);
    return t;
}

void watch_slot_free(struct watch_slot *t)
{
    close(t->fd);
    buf_release(&t->out);
    free(t);
}

void watch_slot_say(struct watch_slot *t, const struct watch_head *head, const void *body)
{
    struct err ignored;

    if (t->write_failed)
        return;
    if (t->broken || buf_append(&t->out, head, sizeof(*head), &ignored) < 0 ||
        (head->len && buf_append(&t->out, body, head->len, &ignored) < 0))
        t->broken = true;
}

static void hear_all(struct watch_table *s, struct watch_slot *t)
{
    size_t at = 0;
    struct watch_head head;

    while (!t->broken && t->said - at >= sizeof(head)) {
        memcpy(&head, t->in + at, sizeof(head));
        if (head.len > WATCH_SAID_BYTES - sizeof(head)) {
            t->broken = true;
        } else if (t->said - at < sizeof(head) + head.len) {
            break;
        } else {
            t->broken = !watch_table_hear(s, t, &head, t->in + at + sizeof(head)) || t->broken;
            at += sizeof(head) + head.len;
        }
    }
    memmove(t->in, t->in + at, t->said - at);
    t->said -= at;
}

void watch_slot_read(struct watch_table *s, struct watch_slot *t)
{
    for (int turns = 0; turns < 8 && !t->broken; turns++) {
        ssize_t n = recv(t->fd, t->in + t->said, sizeof(t->in) - t->said, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            t->broken = true;
        if (n <= 0)
            return;
        t->said += (size_t)n;
        hear_all(s, t);
    }
}

void watch_slot_write(struct watch_slot *t)
{
    while (t->out.len) {
        ssize_t n = send(t->fd, t->out.data, t->out.len, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            t->write_failed = true; /* its earlier messages can still be read */
            buf_clear(&t->out);
            return;
        }
        buf_consume(&t->out, (size_t)n);
    }
}
