/* fuzz_status.c - every answer is a success or an error with a message. Byte 0: the status, 100 + 2 * byte. */
#include "fuzz.h"

#include "common/json.h"
#include "kube/apistatus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_status s = {0};
    struct err err = {0};

    if (size < 1 || size > 100000)
        return 0;
    struct kube_http_response r = {100 + 2 * data[0], -1, {(const char *)data + 1, size - 1}, false};
    int rc = kube_status_check(&r, &s, &err);
    MUST((rc == 0) == (r.status >= 200 && r.status <= 299));
    MUST(rc == 0 || (err.kind != ERR_NONE && err.msg[0] && err.code == r.status));
    cleanup_json cJSON *object = json_parse(r.body.p, r.body.len, &err);
    if (!object)
        return 0;
    err = (struct err){0};
    MUST(kube_status_object(object, &s, &err) == -1);
    MUST(err.kind != ERR_NONE && s.retry_after_ms >= -1);
    return 0;
}
