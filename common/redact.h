/* redact.h - remove secrets from text that other people will read, such as a program's last lines. Pure.
 *
 * It recognises secrets by the text around them and by their prefix. It may miss one, and may hide a word
 * that is not a secret:
 *   scheme://USER:PASSWORD@host
 *   NAME=VALUE, NAME: VALUE, "NAME": "VALUE", ["NAME"] = "VALUE", --NAME VALUE
 *     where NAME contains token, secret, password, credential or key
 *   Bearer VALUE, and the line after Authorization:
 *   words with the prefixes of well-known services: hf_, ghp_, AKIA, eyJ, ...; Weights & Biases' 40 hex digits
 *   the text between BEGIN PRIVATE KEY and END
 * It keeps values after "token" and "key" that are numbers or short: programs count tokens and name keys.
 */
#ifndef TK_COMMON_REDACT_H
#define TK_COMMON_REDACT_H

#include <stdbool.h>

/* Replace each secret in s by "***", or fewer stars if it is shorter. The text never grows, and a second call
 * changes nothing. */
void redact_secrets(char *s);

/* Whether the value behind this name may be a secret: HF_TOKEN, aws_secret_access_key, password. */
bool redact_names_secret(const char *name);

#endif
