/* choose.c - `trainer choose`: questions with several endings, as HellaSwag's, and how many a GPT-2 gets right. */
#include "trainer/command.h"

#include "trainer/generate/questions.h"
#include "trainer/speaker.h"

#include <inttypes.h>
#include <stddef.h>

struct options {
    struct speaker_options speaker; /* first */
    const char *questions;
    int64_t limit;
    bool help;
};

#define AT(field) offsetof(struct options, field)

static const struct option_row ROWS[] = {
    {"questions", "FILE", OPTION_TEXT, AT(questions),
     .help =
         "A question per line, gzip-compressed or not: {\"ctx\": TEXT, \"endings\": [TEXT, ...], \"label\": "
         "NUMBER from 0}, as HellaSwag's files have it; other fields are passed over. A space is put before "
         "each ending. FILE.bin: llm.c's questions, of tokens already."},
    {"limit", "N", OPTION_INTEGER, AT(limit), 1, INT32_MAX, .help = "The first N questions. Default: all."},
    SPEAKER_ROWS,
    {"help", NULL, OPTION_FLAG, AT(help), .help = "This text."},
};

static int choose(struct speaker *s, const struct options *o, FILE *out, struct err *err)
{
    struct choice_counts counts = {0};

    if (!o->questions)
        return err_set(err, ERR_INVALID, "expected --questions FILE (trainer choose --help)");
    if (speaker_open(s, &o->speaker, err))
        return -1;
    cleanup_questions struct questions *all = questions_open(o->questions, s->bpe, o->limit, err);
    if (!all)
        return -1;
    if (questions_check(all, decoder_vocab(s->decoder), decoder_positions(s->decoder), err))
        return err_wrap(err, "%.100s", o->questions);
    for (int64_t i = 0; i < questions_count(all); i++)
        if (choice_count(s->decoder, questions_at(all, i), &counts, err))
            return err_wrap(err, "%.100s: question %" PRId64, o->questions, i);
    fprintf(out, "%" PRId64 " questions: accuracy %.4f by sums, %.4f by means\n", counts.asked,
            (double)counts.by_sum / (double)counts.asked, (double)counts.by_mean / (double)counts.asked);
    return 0;
}

static int run(const struct command *command, int argc, char *const *argv, FILE *out, struct err *err)
{
    const struct option_table table = {command->row, command->rows, command->name, speaker_take_name, NULL};
    struct options o = {0};
    struct speaker s __attribute__((cleanup(speaker_close))) = {0};

    if (option_parse(&table, argc, argv, &o, err))
        return -1;
    if (o.help) {
        command_help(command, out);
        return 0;
    }
    o.speaker.no_text = o.questions && questions_are_tokens(o.questions);
    return choose(&s, &o, out, err);
}

const struct command command_choose = {
    .name = "choose",
    .synopsis = "[NAME|FILE.yaml] --init_from FILE --questions FILE [options]",
    .about = "Asks a trained GPT-2 which of several endings goes with a text, and says how often it is "
             "right: by the sum of "
             "the logarithms of an ending's tokens, and by their mean, which does not favour short ones.",
    .row = ROWS,
    .rows = ARRAY_LEN(ROWS),
    .main = run,
};
