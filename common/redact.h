/* redact.h - take secrets out of text that other people are to read, such as what a program wrote last. Pure.
 *
 * It knows secrets by their surroundings and by their shape, so it may miss one, and may hide a word that is none:
 *   scheme://USER:PASSWORD@host
 *   NAME=VALUE, NAME: VALUE, "NAME": "VALUE", ["NAME"] = "VALUE", --NAME VALUE
 *     where NAME speaks of a token, secret, password, credential or key
 *   Bearer VALUE, and all behind Authorization:
 *   words that begin as those of well-known services do: hf_, ghp_, AKIA, eyJ, ...; Weights & Biases' 40 hex digits
 *   what stands between BEGIN PRIVATE KEY and END
 * Values behind "token" and "key" that are numbers or short are kept: programs count tokens and name keys.
 */
#ifndef TK_COMMON_REDACT_H
#define TK_COMMON_REDACT_H

#include <stdbool.h>

/* Each secret in s becomes "***", or fewer stars where it is shorter. The text never grows, and a second pass changes nothing. */
void redact_secrets(char *s);

/* Whether the value behind this name may be a secret: HF_TOKEN, aws_secret_access_key, password. */
bool redact_names_secret(const char *name);

#endif
