/* fuzz_yaml.c - what yaml_tree_parse accepts is within its bounds, is JSON, and is the same when written and read again. */
#include "fuzz.h"

#include "common/json.h"
#include "common/yaml.h"
#include "common/yaml_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    cleanup_arena struct arena a = {0};
    struct yaml_tree *parsed;

    if (yaml_tree_parse("f.yaml", (const char *)data, size, &a, &parsed, &err) < 0) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        return 0;
    }
    cleanup_json cJSON *tree = yaml_json(parsed);
    cleanup_buf struct buf text = BUF_INIT(8 << 20);
    MUST(json_write(tree, &text, &err) == 0);
    cleanup_json cJSON *again = json_parse(buf_str(&text), text.len, &err);
    MUST(again && json_hash(again) == json_hash(tree));
    cleanup_buf struct buf yaml = BUF_INIT(16 << 20);
    MUST(yaml_write(tree, &yaml, &err) == 0);
    if (yaml.len > YAML_TREE_BYTES_MAX)
        return 0;
    MUST(yaml_tree_parse("f.yaml", buf_str(&yaml), yaml.len, &a, &parsed, &err) == 0);
    cleanup_json cJSON *third = yaml_json(parsed);
    MUST(json_hash(third) == json_hash(tree));
    return 0;
}
