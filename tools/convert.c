/* convert.c - `trainer convert`: convert a GPT-2's weights between file formats of nanoGPT, llm.c, Hugging Face and ours. */
#include "common/sv.h"
#include "tools/tools.h"

#include "trainer/state/files/export.h"
#include "trainer/state/state_dict.h"
#include "trainer/state/weights/gpt2_names.h"
#include "trainer/state/weights/llmc.h"
#include "trainer/state/weights/rewrite.h"
#include "trainer/state/weights/weights.h"

#include <stddef.h>
#include <string.h>

struct options {
    const char *input, *output, *dtype;
    bool huggingface, help;
    int64_t heads;
};

#define AT(field) offsetof(struct options, field)

static const struct option_row ROWS[] = {
    {"output", "FILE", OPTION_TEXT, AT(output),
     .help = "What to write: FILE.safetensors, FILE.pt (both with nanoGPT's names), or FILE.bin (llm.c's)."},
    {"huggingface", NULL, OPTION_FLAG, AT(huggingface),
     .help = "Names and matrices as GPT2LMHeadModel has them: (in, out), lm_head left to wte."},
    {"dtype", "f32|bf16|f16", OPTION_TEXT, AT(dtype),
     .help = "Numbers in the output. Default f32; .bin: f32 or bf16."},
    {"heads", "N", OPTION_INTEGER, AT(heads), 1, LLMC_SIDE_MAX,
     .help = "For FILE.bin, which tells them: heads of a block. Default: the input's, else one for 64 of the "
             "width."},
    {"help", NULL, OPTION_FLAG, AT(help), .help = "This text."},
};

static int take_input(void *into, const char *text, struct err *err)
{
    struct options *o = into;

    if (o->input)
        return err_set(err, ERR_INVALID, "\"%.80s\": expected one FILE", text);
    o->input = text;
    return 0;
}

static int parse_dtype(const struct options *o, enum pt_dtype *ret, struct err *err)
{
    static const struct {
        const char *name;
        enum pt_dtype dtype;
    } all[] = {{"f32", PT_F32}, {"bf16", PT_BF16}, {"f16", PT_F16}};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(o->dtype, all[i].name) == 0) {
            *ret = all[i].dtype;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "--dtype: expected f32, bf16 or f16, got \"%.60s\"", o->dtype);
}

static int check(const struct options *o, enum pt_dtype dtype, struct err *err)
{
    bool llmc = o->output && sv_ends(sv_from(o->output), ".bin");

    if (!o->input || !o->output)
        return err_set(err, ERR_INVALID, "expected FILE and --output FILE (trainer convert --help)");
    if (!llmc && !sv_ends(sv_from(o->output), ".pt") && !sv_ends(sv_from(o->output), ".safetensors"))
        return err_set(err, ERR_INVALID,
                       "--output: \"%.160s\": expected a name that ends in .safetensors, .pt or .bin",
                       o->output);
    if (llmc && (o->huggingface || dtype == PT_F16))
        return err_set(err, ERR_INVALID, "--output: a .bin file has a layout of its own, and f32 or bf16");
    return 0;
}

struct llmc_file {
    struct llmc_header header;
    const struct tensor_list *list;
};

static int put_llmc(void *ctx, const struct pt_sink *sink, struct err *err)
{
    const struct llmc_file *f = ctx;

    return llmc_write(&f->header, f->list, sink, err);
}

static int header_of(const struct options *o, const struct weights *w, enum pt_dtype dtype,
                     struct llmc_header *h, struct err *err)
{
    struct gpt2_names_size s;

    if (gpt2_names_size(&w->list, &s, err))
        return -1;
    if (s.vocab > LLMC_SIDE_MAX || s.positions > LLMC_SIDE_MAX || s.width > LLMC_SIDE_MAX ||
        s.layers > LLMC_LAYERS_MAX)
        return err_set(err, ERR_INVALID, "too large for a .bin file");
    int64_t heads = o->heads ? o->heads : w->heads ? w->heads : s.width / 64;
    if (heads < 1 || s.width % heads)
        return err_set(err, ERR_INVALID, "--heads: %lld, expected a divisor of the width (%lld)",
                       (long long)heads, (long long)s.width);
    *h = (struct llmc_header){.version = dtype == PT_BF16 ? LLMC_BF16 : LLMC_F32,
                              .positions = (int32_t)s.positions,
                              .vocab = (int32_t)s.vocab,
                              .layers = (int32_t)s.layers,
                              .heads = (int32_t)heads,
                              .width = (int32_t)s.width,
                              .padded_vocab = (int32_t)s.vocab};
    return 0;
}

static int write_output(const struct options *o, const struct weights *w, enum pt_dtype dtype,
                        struct err *err)
{
    cleanup_arena struct arena a = {0};
    bool llmc = sv_ends(sv_from(o->output), ".bin");
    bool pt = sv_ends(sv_from(o->output), ".pt");
    const struct rewrite_options how = {.layout = llmc             ? REWRITE_BARE
                                                  : o->huggingface ? REWRITE_HUGGINGFACE
                                                                   : REWRITE_NANOGPT,
                                        .dtype = dtype,
                                        .tied = pt && !o->huggingface};
    struct tensor_list list;
    struct llmc_file f = {.list = &list};

    if (rewrite(&w->list, &how, &a, &list, err))
        return -1;
    if (llmc)
        return header_of(o, w, dtype, &f.header, err) || export_file(o->output, put_llmc, &f, err) ? -1 : 0;
    if (!pt)
        return export_safetensors(o->output, &list, err);
    struct pt_value dict = state_dict_pt(&list, &a);
    return export_pt(o->output, &dict, err);
}

static int run(const struct command *c, int argc, char *const *argv, FILE *out, struct err *err)
{
    const struct option_table table = {c->row, c->rows, c->name, take_input, NULL};
    struct options o = {.dtype = "f32"};
    cleanup_weights struct weights w = {0};
    enum pt_dtype dtype;

    if (option_parse(&table, argc, argv, &o, err))
        return -1;
    if (o.help) {
        command_help(c, out);
        return 0;
    }
    if (parse_dtype(&o, &dtype, err) || check(&o, dtype, err) || weights_open(&w, o.input, err))
        return -1;
    return write_output(&o, &w, dtype, err) ? err_wrap(err, "%.100s", o.input) : 0;
}

const struct command command_convert = {
    .name = "convert",
    .synopsis = "FILE --output FILE [options]",
    .about = "Writes a GPT-2's weights as another program wants them. Reads .safetensors and .pt files of "
             "Hugging Face, "
             "nanoGPT, build-nanogpt and this program, and llm.c's .bin (version 3 or 5), told by content.",
    .row = ROWS,
    .rows = ARRAY_LEN(ROWS),
    .main = run,
};
