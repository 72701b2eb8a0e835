/* refusal.c - find out from the message who refused a create, and rewrite its paths to those in the job. */
#include "operator/refusal.h"

#include "common/json.h"
#include "common/text.h"
#include "operator/api/pod.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 4096 };

static const char FIELD[] = "field \"";

enum refusal refusal_of(const char *kind, const char *message)
{
    size_t len = strlen(kind);

    /* A group may follow the kind: Deployment.apps "x" is invalid. */
    if (strncmp(message, kind, len) != 0 || !strchr(". ", message[len]))
        return REFUSAL_POLICY;
    if (strncmp(message + len, " in version \"", 13) == 0)
        return strstr(message, ": strict decoding error: ") ? REFUSAL_FIELD : REFUSAL_VALUE;
    return strstr(message, "\" is invalid: ") ? REFUSAL_VALUE : REFUSAL_POLICY;
}

/* Append the path up to its closing quote; `at` is the object in which it begins. Returns the quote, or the
 * end of the text. */
static const char *put_path(char *out, const cJSON *at, const char *path)
{
    while (*path && *path != '"') {
        size_t n = strcspn(path, ".[]\"");
        cleanup_free char *key = strndup(path, n);
        if (path[n] == ']') {
            at = cJSON_GetArrayItem(at, atoi(key));
            const char *name = json_str(at, "name");
            text_add(out, TEXT_BYTES, "%s", name ? name : key);
        } else {
            at = n ? json_child(at, key) : at;
            text_add(out, TEXT_BYTES, "%s", key);
        }
        path += n;
        if (*path && *path != '"')
            text_add(out, TEXT_BYTES, "%c", *path++);
    }
    return path;
}

void refusal_put_paths(struct err *err, const char *body)
{
    struct err ignored;
    char text[TEXT_BYTES] = "";
    cleanup_json cJSON *pod = json_parse(body, strlen(body), &ignored);
    const char *type = json_str(json_find(pod, (const char *[]){"metadata", "labels", NULL}), LABEL_TYPE);
    const char *rest = err->msg;

    for (const char *at; (at = strstr(rest, FIELD)) != NULL;) {
        at += strlen(FIELD);
        text_add(text, sizeof(text), "%.*sspec.replicaSpecs[%s].template.", (int)(at - rest), rest,
                 type ? type : "");
        rest = put_path(text, pod, at);
    }
    text_add(text, sizeof(text), "%s", rest);
    int code = err->code;
    err_set(err, err->kind, "%s", text);
    err->code = code;
}
