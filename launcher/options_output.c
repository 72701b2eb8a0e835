/* options_output.c - resolve the options that say where the ranks' output goes. */
#include "common/sv.h"
#include "launcher/options_read.h"

#include <string.h>

/* Parse "3" (all ranks) or "0:1,12:3" (local rank:value) into STD_* for each of nproc ranks. */
static int get_map(const struct option_values *v, int id, int nproc, struct arena *a, uint8_t **ret,
                   struct err *err)
{
    struct sv rest = sv_from(v->text[id] ? v->text[id] : "0"), part;
    int64_t rank, bits;

    *ret = arena_array(a, (size_t)nproc, uint8_t);
    if (sv_i64(rest, STD_NONE, STD_BOTH, &bits)) {
        memset(*ret, (int)bits, (size_t)nproc);
        return 0;
    }
    while (rest.len && sv_next(&rest, ',', &part)) {
        struct sv left, right = part;
        sv_next(&right, ':', &left);
        if (!sv_i64(sv_trim(left), 0, OPTIONS_NPROC_MAX, &rank) ||
            !sv_i64(sv_trim(right), STD_NONE, STD_BOTH, &bits))
            return err_set(err, ERR_INVALID, "--%s=%.80s: expected 0, 1, 2 or 3, or RANK:0..3 pairs",
                           option_rows[id].name, v->text[id]);
        if (rank < nproc) /* one command line for nodes with more ranks and with fewer */
            (*ret)[rank] = (uint8_t)bits;
    }
    return 0;
}

/* Split a list at commas; ",," is a literal comma: "a,b,,c" gives "a" and "b,c". NULL when the list is empty. */
static const char *const *split_filters(const char *text, struct arena *a)
{
    const size_t len = text ? strlen(text) : 0;
    const char **list = arena_array(a, len + 1, const char *);
    char *item = arena_alloc(a, 2 * len + 1); /* the bytes, and a NUL for each of at most len + 1 items */
    int n = 0;

    for (size_t at = 0, used; at < len; item += used + 1) {
        used = 0;
        for (; at < len && (text[at] != ',' || text[at + 1] == ','); at++) {
            at += text[at] == ',';
            item[used++] = text[at];
        }
        at++;
        item[used] = '\0';
        if (used)
            list[n++] = item;
    }
    return n ? list : NULL;
}

int options_output(const struct option_values *v, struct arena *a, struct options *o, struct err *err)
{
    const char *filter = v->text[OPT_LOCAL_RANKS_FILTER], *prefix = v->text[OPT_LOG_LINE_PREFIX_TEMPLATE];
    struct sv rest = sv_from(filter ? filter : ""), part;
    int64_t rank;

    o->log_dir = v->text[OPT_LOG_DIR];
    if (o->log_dir && strcmp(o->log_dir, "/dev/null") == 0)
        o->log_dir = NULL; /* nobody wants the files: they lie in a temporary folder */
    o->prefix_template = prefix && *prefix ? prefix : NULL;
    o->filters[0] = split_filters(v->text[OPT_DUPLICATE_STDOUT_FILTERS], a);
    o->filters[1] = split_filters(v->text[OPT_DUPLICATE_STDERR_FILTERS], a);
    o->shown = arena_array(a, (size_t)o->nproc, bool);
    memset(o->shown, filter == NULL, (size_t)o->nproc);
    while (rest.len && sv_next(&rest, ',', &part)) {
        if (!sv_i64(sv_trim(part), 0, OPTIONS_NPROC_MAX, &rank))
            return option_bad(v, OPT_LOCAL_RANKS_FILTER, err, "local ranks with commas between them");
        if (rank < o->nproc)
            o->shown[rank] = true;
    }
    return get_map(v, OPT_REDIRECTS, o->nproc, a, &o->redirects, err) < 0
               ? -1
               : get_map(v, OPT_TEE, o->nproc, a, &o->tee, err);
}
