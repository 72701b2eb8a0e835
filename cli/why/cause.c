/* cause.c - read the table of causes, and choose a row. */
#include "cli/why/cause.h"

#include "cli/texts.h"

#include <stdlib.h>

const char *const CAUSE_KINDS[] = {
    [WHY_HEALTHY] = "",           [WHY_JOB] = "Job",           [WHY_REFUSED] = "PodsRefused",
    [WHY_WAITING] = "PodWaiting", [WHY_FAILURE] = "PodFailed", NULL};

enum { SENTENCE_BYTES = 400 };

const struct yaml_tree *causes_read(struct arena *a)
{
    struct yaml_tree *ret;
    struct err err;

    if (yaml_tree_parse("causes.yaml", causes_yaml, strlen(causes_yaml), a, &ret, &err) < 0)
        abort(); /* it is a part of the program */
    return ret;
}

static int read_row(const struct yaml_at *at, struct cause *c, struct err *err)
{
    static const char *const KEYS[] = {"reasons",  "code", "texts", "subject",
                                       "headline", "next", "todo",  NULL};
    const struct yaml_at texts = yaml_member(at, "texts");

    *c = (struct cause){.texts = texts.node ? texts.node->first : NULL};
    if (yaml_expect_mapping(at, KEYS, err) < 0 || yaml_require(at, "headline", err) < 0 ||
        yaml_require(at, "todo", err) < 0 || yaml_get_i64(at, "code", -1, 255, &c->code, err) < 0 ||
        yaml_get_str(at, "reasons", SENTENCE_BYTES, &c->reasons, err) < 0 ||
        yaml_get_str(at, "subject", SENTENCE_BYTES, &c->subject, err) < 0 ||
        yaml_get_str(at, "headline", SENTENCE_BYTES, &c->headline, err) < 0 ||
        yaml_get_str(at, "next", SENTENCE_BYTES, &c->next, err) < 0)
        return -1;
    return yaml_get_str(at, "todo", SENTENCE_BYTES, &c->todo, err);
}

/* Whether a word of `list` is the reason; "OutOf*" is each that begins so. */
static bool in_words(const char *list, const char *reason)
{
    struct sv rest = sv_from(list), word;

    while (sv_next(&rest, ' ', &word)) {
        const bool open = word.len && word.p[word.len - 1] == '*';
        const size_t len = word.len - open;
        if (!strncmp(word.p, reason, len) && (open || !reason[len]))
            return true;
    }
    return false;
}

static bool has_text(const struct cause *c, const char *text)
{
    const struct yaml_tree *t = c->texts;

    while (t && !strcasestr(text, t->text))
        t = t->next;
    return t;
}

static bool fits(const struct cause *c, const struct finding *g)
{
    if (c->reasons && !in_words(c->reasons, g->reason))
        return false;
    return (c->code ? c->code == g->exit_code : !c->texts) || has_text(c, g->text);
}

/* By the reason, by the line with the error (other lines of the log may be of something else), or by a signal from elsewhere of
 * which the program left no message: then that line is only the last one of the log. One that aborts (134) mostly says why. */
static bool fits_surely(const struct cause *c, const struct finding *g)
{
    const bool by_signal = c->code > 128 && c->code != 134 && c->code == g->exit_code && !g->message[0];

    return c->reasons ? fits(c, g) : by_signal || has_text(c, g->line);
}

const struct cause *cause_of(const struct yaml_tree *causes, const struct finding *g, struct arena *a)
{
    const struct yaml_at root = yaml_root("causes.yaml", causes);
    const struct yaml_at rows = yaml_member(&root, CAUSE_KINDS[g->kind]);
    struct cause *ret = arena_new(a, struct cause);
    struct err err;

    for (int sure = g->line != NULL; sure >= 0; sure--) {
        int i = 0;
        for (const struct yaml_tree *row = rows.node->first; row; row = row->next) {
            const struct yaml_at at = yaml_item(&rows, row, i++);
            if (read_row(&at, ret, &err) < 0)
                abort(); /* as in causes_read */
            if (sure ? fits_surely(ret, g) : fits(ret, g))
                return ret;
        }
    }
    return ret;
}

const char *cause_subject(const struct cause *c, const struct finding *g, struct arena *a)
{
    const char *at = c->subject ? strcasestr(g->text, c->subject) : NULL;

    if (!at)
        return "";
    at += strlen(c->subject);
    const size_t len = strcspn(at, "\"', \n");
    return arena_strndup(a, at, len - (len && at[len - 1] == ':'));
}
