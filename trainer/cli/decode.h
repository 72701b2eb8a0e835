/* decode.h - what decode.c calls for the parts of a preset: loss, optimizer, schedule, data, output.
 *
 * Ownership: nothing is kept; `root` is the document.
 * Errors:    ERR_INVALID naming file, line and field; *ret is then undefined.
 */
#ifndef TK_TRAINER_CLI_DECODE_H
#define TK_TRAINER_CLI_DECODE_H

#include "common/spec_option.h"
#include "common/yaml.h"
#include "trainer/model/spec.h"

/* The values of all `rows` in the mapping at `at`: only what is there is written (common/spec_option.h). */
int decode_options(const struct yaml_at *at, const struct spec_option *rows, int64_t *option, double *number,
                   const char **text, struct err *err) MUST_CHECK;

/* The mapping at `at` may hold `common` keys (NULL-terminated) and those of `rows`. */
int decode_keys(const struct yaml_at *at, const char *const *common, const struct spec_option *rows,
                struct err *err) MUST_CHECK;

int decode_loss(const struct yaml_at *root, struct loss_spec *ret, struct err *err) MUST_CHECK;
int decode_optimizer(const struct yaml_at *root, struct optimizer_spec *ret, struct err *err) MUST_CHECK;
int decode_schedule(const struct yaml_at *root, struct schedule_spec *ret, struct err *err) MUST_CHECK;

struct config;

/* `data`; the model and the loss have been read. */
int decode_data(const struct yaml_at *root, struct config *cfg, struct err *err) MUST_CHECK;

/* `print`, `arguments` and `test`. */
int decode_output(const struct yaml_at *root, struct config *cfg, struct err *err) MUST_CHECK;

#endif
