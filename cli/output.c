/* output.c - write one JSON object as a line. */
#include "cli/output.h"

#include "common/json.h"
#include "common/text.h"

static void add_escape(struct buf *out, uint32_t c)
{
    if (c < 0x10000)
        (void)buf_printf(out, NULL, "\\u%04x", (unsigned)c);
    else
        (void)buf_printf(out, NULL, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                         (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
}

int output_json(const cJSON *object, struct buf *out, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(out->max);

    if (json_write(object, &text, err) < 0)
        return -1;
    /* json_write has escaped the characters below ' '. In JSON all others that need it stand in strings. */
    for (struct sv rest = {buf_str(&text), text.len}; rest.len;) {
        uint32_t c = 0;
        const size_t n = text_character(rest.p, rest.len, &c);
        if (!n || (c >= 0x7f && c < 0xa0) || text_is_hidden(c))
            add_escape(out, n ? c : 0xfffd);
        else
            (void)buf_append(out, rest.p, n, NULL);
        rest = sv_skip(rest, n ? n : 1);
    }
    (void)buf_puts(out, "\n", NULL);
    return buf_check(out, err);
}
