/* merge.c - queues of lines, one for each stream; the oldest head goes first. */
#include "cli/logs/merge.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

static const char CUT[] = " [cut: a longer line]";
enum {
    NS_PER_S = 1000000000,
    MS_PER_S = 1000,
    QUEUE_MAX = 64 << 20, /* callers that go on feeding a full stream */
};
static const int64_t YEAR_2255_MS = 9000000000 * MS_PER_S; /* later than that nanoseconds do not fit */

/* In front of each line of a queue; behind it the time and the text. */
struct head {
    int64_t ns, came_ms;
    uint32_t time_len, len;
};

struct stream {
    bool used, closed, live;
    struct buf queue;  /* lines, one behind the other */
    size_t taken;      /* so many of its bytes are no longer wanted */
    struct head first; /* of the first line that is wanted, if there is any */
    struct buf part;   /* the unfinished line */
    bool part_cut;
    int64_t byte_ms;
    /* The last line that came, and how many came with its time: those are passed over when they come again. */
    bool seen;
    int64_t seen_ns;
    int seen_n;
    bool again;  /* lines may come again */
    int again_n; /* so many of the last time came again already */
};

struct merge {
    struct stream streams[MERGE_STREAMS];
    struct buf taken; /* the line that was given last */
};

struct merge *merge_new(void)
{
    return memory_must(calloc(1, sizeof(struct merge)));
}

static void forget(struct stream *s)
{
    buf_release(&s->queue);
    buf_release(&s->part);
    *s = (struct stream){0};
}

static bool has_line(const struct stream *s)
{
    return s->queue.len > s->taken;
}

void merge_free(struct merge *m)
{
    if (!m)
        return;
    for (int i = 0; i < MERGE_STREAMS; i++)
        forget(&m->streams[i]);
    buf_release(&m->taken);
    free(m);
}

bool merge_open(struct merge *m, int stream, int64_t mono_ms)
{
    struct stream *s = &m->streams[stream];

    if (s->used)
        return false;
    *s = (struct stream){
        .used = true, .byte_ms = mono_ms, .part = BUF_INIT(MERGE_LINE_BYTES), .queue = BUF_INIT(QUEUE_MAX)};
    return true;
}

/* "2026-01-01T00:00:00.000000001Z" at the beginning of the line, with its length. */
static bool parse_time(struct sv line, int64_t *ret_ns, size_t *ret_len)
{
    const char *space = memchr(line.p, ' ', line.len < 48 ? line.len : 48);
    const size_t len = space ? (size_t)(space - line.p) : line.len;
    char text[48];
    int64_t ms, ns = 0;

    if (len >= sizeof(text))
        return false;
    memcpy(text, line.p, len);
    text[len] = '\0';
    if (!clock_parse_rfc3339(text, &ms) || ms < 0 || ms > YEAR_2255_MS)
        return false;
    const char *digit = strchr(text, '.');
    for (int64_t unit = NS_PER_S / 10; digit && digit[1] >= '0' && digit[1] <= '9'; unit /= 10)
        ns += (*++digit - '0') * unit;
    *ret_ns = ms / MS_PER_S * NS_PER_S + ns;
    *ret_len = len;
    return true;
}

/* Whether a line of this time came before the break. */
static bool came_before(struct stream *s, int64_t ns)
{
    if (!s->again)
        return false;
    if (ns < s->seen_ns || (ns == s->seen_ns && s->again_n++ < s->seen_n))
        return true;
    s->again = false;
    return false;
}

/* Which line is the first one now; what is before it is dropped from time to time. */
static void look_at_first(struct stream *s)
{
    if (!has_line(s) && s->queue.cap > MERGE_QUEUE_BYTES)
        buf_release(&s->queue);
    if (!has_line(s) || s->taken > MERGE_QUEUE_BYTES / 2) {
        buf_consume(&s->queue, s->queue.len < s->taken ? s->queue.len : s->taken);
        s->taken = 0;
    }
    if (has_line(s))
        memcpy(&s->first, s->queue.data + s->taken, sizeof(s->first));
}

static void put(struct stream *s, int64_t ns, size_t time_len, struct sv whole, int64_t mono_ms)
{
    const size_t cut = s->part_cut ? sizeof(CUT) - 1 : 0;
    const struct head h = {ns, mono_ms, (uint32_t)time_len, (uint32_t)(whole.len + cut)};

    buf_append(&s->queue, &h, sizeof(h), NULL);
    buf_append(&s->queue, whole.p, whole.len, NULL);
    buf_append(&s->queue, CUT, cut, NULL);
    look_at_first(s);
}

/* What a kubelet answers when the container, or its log file, has been removed. It is not news when lines came already. */
static bool says_gone(struct sv line)
{
    const bool no_file = sv_starts(line, "failed to try resolving symlinks in path ") ||
                         sv_starts(line, "failed to open log file ");

    return sv_starts(line, "unable to retrieve container logs for ") ||
           (no_file && sv_ends(line, ": no such file or directory"));
}

static void take_line(struct stream *s, struct sv line, int64_t mono_ms)
{
    int64_t ns = s->seen ? s->seen_ns : 0;
    size_t time_len = 0;
    const bool timed = parse_time(line, &ns, &time_len);

    /* A line without a time is the server's own, in place of a log. */
    if (timed ? came_before(s, ns) : !line.len || (s->seen && says_gone(line)))
        return;
    put(s, ns, time_len, line, mono_ms);
    if (!timed)
        return;
    s->seen_n = s->seen && s->seen_ns == ns ? s->seen_n + 1 : 1;
    s->seen_ns = ns;
    s->seen = true;
}

void merge_begin(struct merge *m, int stream, bool live, int64_t mono_ms)
{
    struct stream *s = &m->streams[stream];

    s->live = live;
    s->byte_ms = mono_ms;
    s->again = s->seen;
    s->again_n = 0;
    buf_clear(&s->part);
    s->part_cut = false;
}

static void keep_part(struct stream *s, struct sv bytes)
{
    const size_t room = MERGE_LINE_BYTES - s->part.len;

    s->part_cut |= bytes.len > room;
    buf_append(&s->part, bytes.p, bytes.len < room ? bytes.len : room, NULL);
}

void merge_feed(struct merge *m, int stream, struct sv bytes, int64_t mono_ms)
{
    struct stream *s = &m->streams[stream];

    s->byte_ms = mono_ms;
    while (bytes.len) {
        const char *end = memchr(bytes.p, '\n', bytes.len);
        const size_t len = end ? (size_t)(end - bytes.p) : bytes.len;
        if (end && !s->part.len && len <= MERGE_LINE_BYTES) {
            take_line(s, (struct sv){bytes.p, len}, mono_ms);
        } else {
            keep_part(s, (struct sv){bytes.p, len});
            if (end) {
                take_line(s, (struct sv){s->part.data, s->part.len}, mono_ms);
                buf_clear(&s->part);
                s->part_cut = false;
            }
        }
        bytes.p += len + (end != NULL);
        bytes.len -= len + (end != NULL);
    }
}

void merge_end(struct merge *m, int stream, bool whole, int64_t mono_ms)
{
    struct stream *s = &m->streams[stream];

    if (whole && s->part.len)
        take_line(s, (struct sv){s->part.data, s->part.len}, mono_ms);
    buf_clear(&s->part);
    s->part_cut = false;
}

static void free_if_used_up(struct stream *s)
{
    if (s->used && s->closed && !has_line(s))
        forget(s);
}

void merge_close(struct merge *m, int stream)
{
    m->streams[stream].closed = true;
    free_if_used_up(&m->streams[stream]);
}

bool merge_is_full(const struct merge *m, int stream)
{
    return m->streams[stream].queue.len - m->streams[stream].taken >= MERGE_QUEUE_BYTES;
}

/* Which stream has the oldest line; -1: none has any. *ret_hold_ms: until when it has to wait for the others. */
static int oldest(const struct merge *m, int64_t mono_ms, int64_t *ret_hold_ms)
{
    int first = -1;
    int64_t patience = INT64_MIN;
    bool full = false, silent = false;

    for (int i = 0; i < MERGE_STREAMS; i++) {
        const struct stream *s = &m->streams[i];
        if (has_line(s) && (first < 0 || s->first.ns < m->streams[first].first.ns))
            first = i;
        full |= s->used && merge_is_full(m, i);
        if (!s->used || s->closed || has_line(s))
            continue;
        silent |= s->live;
        if (!s->live && s->byte_ms + MERGE_PATIENCE_MS > mono_ms && s->byte_ms + MERGE_PATIENCE_MS > patience)
            patience = s->byte_ms + MERGE_PATIENCE_MS;
    }
    *ret_hold_ms = patience;
    if (first >= 0 && patience == INT64_MIN && silent && !full)
        *ret_hold_ms = m->streams[first].first.came_ms + MERGE_WINDOW_MS;
    return first;
}

bool merge_next(struct merge *m, int64_t mono_ms, struct merge_line *ret)
{
    int64_t hold_ms;
    const int i = oldest(m, mono_ms, &hold_ms);

    if (i < 0 || hold_ms > mono_ms)
        return false;
    struct stream *s = &m->streams[i];
    const struct head h = s->first;
    const size_t skip = h.time_len + (h.time_len && h.len > h.time_len); /* the space behind it */
    m->taken.max = QUEUE_MAX;
    buf_clear(&m->taken);
    buf_append(&m->taken, s->queue.data + s->taken + sizeof(h), h.len, NULL);
    s->taken += sizeof(h) + h.len;
    look_at_first(s);
    *ret = (struct merge_line){
        i, h.ns, {buf_str(&m->taken), h.time_len}, {buf_str(&m->taken) + skip, h.len - skip}};
    free_if_used_up(s);
    return true;
}

int64_t merge_due_ms(const struct merge *m, int64_t mono_ms)
{
    int64_t hold_ms;

    return oldest(m, mono_ms, &hold_ms) < 0 ? INT64_MAX : hold_ms;
}

bool merge_is_empty(const struct merge *m)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if (has_line(&m->streams[i]))
            return false;
    return true;
}

bool merge_since(const struct merge *m, int stream, char out[static MERGE_SINCE_BYTES])
{
    const struct stream *s = &m->streams[stream];

    _Static_assert((int)MERGE_SINCE_BYTES >= (int)CLOCK_RFC3339_BYTES, "clock_rfc3339 writes into it");
    if (!s->seen)
        return false;
    clock_rfc3339(s->seen_ns / NS_PER_S * MS_PER_S, false, out);
    return true;
}
