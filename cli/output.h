/* output.h - `-o json` of the verbs: the option, and one JSON object as a line that any terminal and parser takes.
 *
 * Errors:    those of buf.h.
 */
#ifndef TK_CLI_OUTPUT_H
#define TK_CLI_OUTPUT_H

#include "cli/args.h"
#include "common/buf.h"

#include <cjson/cJSON.h>

/* The option's row in the table of a verb. */
#define OUTPUT_OPTION(about)                                                                                 \
    {                                                                                                        \
        "output", 'o', "FORMAT", option_choice, .help = about, .words = OPTION_WORDS("json")                 \
    }

/* Append the object and '\n'. The line is valid UTF-8: bytes that are not become U+FFFD; control and hidden characters
 * (text_is_hidden) are escaped as \uXXXX. */
int output_json(const cJSON *object, struct buf *out, struct err *err) MUST_CHECK;

#endif
