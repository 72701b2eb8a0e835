/* decode.h - functions that decode.c calls for the parts of a preset: loss, optimizer, schedule, data, output.
 *
 * Ownership: nothing is kept; `root` is the document.
 * Errors:    ERR_INVALID naming file, line and field; *ret is then undefined.
 */
#ifndef TK_TRAINER_CLI_DECODE_H
#define TK_TRAINER_CLI_DECODE_H

#include "common/yaml.h"
#include "trainer/model/spec.h"

int decode_loss(const struct yaml_at *root, struct loss_spec *ret, struct err *err) MUST_CHECK;
int decode_optimizer(const struct yaml_at *root, struct optimizer_spec *ret, struct err *err) MUST_CHECK;
int decode_schedule(const struct yaml_at *root, struct schedule_spec *ret, struct err *err) MUST_CHECK;

struct config;

/* `data`; the model and the loss have been read. */
int decode_data(const struct yaml_at *root, struct config *cfg, struct err *err) MUST_CHECK;

/* `print`, `arguments` and `test`. */
int decode_output(const struct yaml_at *root, struct config *cfg, struct err *err) MUST_CHECK;

#endif
