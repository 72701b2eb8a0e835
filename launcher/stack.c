/* stack.c - parse what Python's faulthandler writes:
 *
 *     Fatal Python error: Aborted
 *
 *     Current thread 0x00007f29 (most recent call first):
 *       File "/usr/lib/python3.11/threading.py", line 320 in wait
 *       File "/app/train.py", line 14 in step
 */
#include "launcher/stack.h"
#include "common/cleanup.h"
#include "common/hash.h"

#include <stdio.h>
#include <string.h>

enum { FRAMES_MAX = 100 }; /* faulthandler's limit */

struct frame {
    struct sv file, line, function;
};

static bool is_installed(struct sv file)
{
    return sv_contains(file, "/site-packages/") || sv_contains(file, "/dist-packages/");
}

static bool is_python_own(struct sv file)
{
    return sv_starts(file, "<frozen ") || (sv_contains(file, "/lib/python3") && !is_installed(file));
}

/* "  File "PATH", line N in NAME". */
static bool read_frame(struct sv line, struct frame *f)
{
    static const char head[] = "  File \"", middle[] = "\", line ";
    const char *cut;

    if (!sv_starts(line, head))
        return false;
    f->file = sv_skip(line, strlen(head));
    if (!(cut = memmem(f->file.p, f->file.len, middle, strlen(middle))))
        return false;
    struct sv rest = {cut + strlen(middle), f->file.len - (size_t)(cut - f->file.p) - strlen(middle)};
    f->file.len = (size_t)(cut - f->file.p);
    if (!sv_next(&rest, ' ', &f->line) || !sv_starts(rest, "in ") || f->line.len > 9)
        return false;
    f->function = sv_skip(rest, 3);
    return true;
}

/* Whether it is a call in which a rank waits for others. */
static bool is_wait(const struct frame *f)
{
    static const char *const names[] = {"backward", "_engine_run_backward", "synchronize"};

    if (sv_contains(f->file, "/torch/distributed/"))
        return !sv_contains(f->file, "/torch/distributed/elastic/");
    if (sv_ends(f->file, "/torch/nn/parallel/distributed.py"))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(names) && sv_contains(f->file, "/torch/"); i++)
        if (sv_eq(f->function, names[i]))
            return true;
    return false;
}

static void set_at(struct stack *s, const struct frame *f)
{
    const char *slash = memrchr(f->file.p, '/', f->file.len);
    const char *name = slash ? slash + 1 : f->file.p;
    const size_t len = f->file.len - (size_t)(name - f->file.p);
    snprintf(s->at, sizeof(s->at), "%.*s:%.*s %.*s()", (int)(len < 64 ? len : 64), name, (int)f->line.len,
             f->line.p, (int)(f->function.len < 64 ? f->function.len : 64), f->function.p);

    for (char *c = s->at; *c; c++)
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';
    s->place = (int64_t)(hash_fnv1a(HASH_FNV1A, s->at, strlen(s->at)) >> 2);
}

/* Read the frames of a thread, the innermost first; moves *text past them. */
static int read_frames(struct sv *text, struct frame *frames)
{
    struct sv line;
    int n = 0;

    while (n < FRAMES_MAX && sv_next(text, '\n', &line) && read_frame(line, &frames[n]))
        n++;
    return n;
}

struct stack stack_read(struct sv text)
{
    static const char start[] = "Fatal Python error: Aborted";
    const char *from = memmem(text.p, text.len, start, strlen(start));
    struct sv rest = {from, from ? text.len - (size_t)(from - text.p) : 0}, line;
    struct frame frames[FRAMES_MAX];
    struct stack s = {.known = false};
    const struct frame *inner = NULL, *own = NULL;
    int n = 0;

    while (from && !n && sv_next(&rest, '\n', &line))
        if (sv_starts(line, "Current thread "))
            n = read_frames(&rest, frames);
    for (int i = 0; i < n; i++) {
        const struct sv file = frames[i].file;
        if (is_python_own(file))
            continue;
        inner = inner ? inner : &frames[i];
        own = own || is_installed(file) || sv_contains(file, "/torch/") ? own : &frames[i];
    }
    if (!n)
        return s;
    s.known = true;
    s.waits = inner && is_wait(inner);
    set_at(&s, own ? own : inner ? inner : &frames[0]);
    return s;
}
