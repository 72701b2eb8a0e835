/* decode_output.c - decode a preset's `print:` lines and its `arguments:`, the options whose values may stand without their names. */
#include "trainer/cli/decode.h"

#include "trainer/cli/options.h"

static int decode_line(const struct yaml_at *at, const char *key, const char **ret, struct err *err)
{
    struct yaml_at member = yaml_member(at, key);
    struct err why;

    if (yaml_get_str(at, key, LINES_TEXT_MAX, ret, err))
        return -1;
    return *ret && lines_check(*ret, &why) ? yaml_err(&member, err, "%s", why.msg) : 0;
}

static int decode_print(const struct yaml_at *root, struct config *cfg, struct err *err)
{
    static const char *const keys[] = {"start", "epoch_start", "epoch_end", "epoch_all", "saved", NULL};
    struct yaml_at at = yaml_member(root, "print");
    struct lines_spec *l = &cfg->lines;

    cfg->own_lines = at.node != NULL;
    return yaml_expect_mapping(&at, keys, err) || decode_line(&at, "start", &l->start, err) ||
                   decode_line(&at, "epoch_start", &l->epoch_start, err) ||
                   decode_line(&at, "epoch_end", &l->epoch_end, err) ||
                   decode_line(&at, "epoch_all", &l->epoch_all, err) ||
                   decode_line(&at, "saved", &l->saved, err)
               ? -1
               : 0;
}

static int decode_arguments(const struct yaml_at *root, struct config *cfg, struct err *err)
{
    struct yaml_at at = yaml_member(root, "arguments");

    if (yaml_expect_sequence(&at, 0, POSITIONALS_MAX, err))
        return -1;
    for (const struct yaml_tree *c = at.node ? at.node->first : NULL; c; c = c->next) {
        struct yaml_at item = yaml_item(&at, c, cfg->positionals);
        const struct option_row *o =
            c->kind == YAML_TREE_SCALAR ? option_find(option_table, sv_from(c->text), '\0') : NULL;
        if (!o || !o->value)
            return yaml_err(&item, err, "expected the name of an option that takes a value, got \"%.40s\"",
                            c->kind == YAML_TREE_SCALAR ? c->text : "a list or mapping");
        cfg->positional[cfg->positionals++] = c->text;
    }
    return 0;
}

int decode_output(const struct yaml_at *root, struct config *cfg, struct err *err)
{
    cfg->test = true;
    return decode_print(root, cfg, err) || decode_arguments(root, cfg, err) ||
                   yaml_get_bool(root, "test", &cfg->test, err)
               ? -1
               : 0;
}
