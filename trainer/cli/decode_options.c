/* decode_options.c - read the keys of a mapping by the rows that a kind of layer, optimizer or data set lists. */
#include "trainer/cli/decode.h"

static int decode_option(const struct yaml_at *at, const struct spec_option *o, int64_t *option,
                         double *number, const char **text, struct err *err)
{
    int choice = (int)*option;
    bool flag = *option;

    switch (o->type) {
    case SPEC_INTEGER:
        return yaml_get_i64(at, o->key, (int64_t)o->min, (int64_t)o->max, option, err);
    case SPEC_NUMBER:
        return yaml_get_f64(at, o->key, o->min, o->max, number, err);
    case SPEC_TEXT:
        return yaml_get_str(at, o->key, (size_t)o->max, text, err);
    case SPEC_FLAG:
        if (yaml_get_bool(at, o->key, &flag, err))
            return -1;
        *option = flag;
        return 0;
    case SPEC_CHOICE:
        if (yaml_get_choice(at, o->key, o->choices, &choice, err))
            return -1;
        *option = choice;
        return 0;
    }
    return 0;
}

int decode_options(const struct yaml_at *at, const struct spec_option *rows, int64_t *option, double *number,
                   const char **text, struct err *err)
{
    for (int i = 0; rows[i].key; i++)
        if ((rows[i].required && yaml_require(at, rows[i].key, err)) ||
            decode_option(at, &rows[i], &option[i], &number[i], text ? &text[i] : NULL, err))
            return -1;
    return 0;
}

int decode_keys(const struct yaml_at *at, const char *const *common, const struct spec_option *rows,
                struct err *err)
{
    const char *keys[2 * SPEC_OPTIONS_MAX + 8];
    int n = 0;

    for (; *common; common++)
        keys[n++] = *common;
    for (; rows->key; rows++)
        keys[n++] = rows->key;
    keys[n] = NULL;
    return yaml_expect_mapping(at, keys, err);
}
