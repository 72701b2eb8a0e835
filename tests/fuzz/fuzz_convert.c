/* fuzz_convert.c - whatever `convert` prints, for either launcher, is a job that the operator accepts, and its YAML has the same values. */
#include "fuzz.h"

#include "cli/convert/convert.h"
#include "cli/jobfile.h"
#include "common/yaml.h"
#include "common/yaml_write.h"

static void convert(const cJSON *entry, const cJSON *entries, bool torchkeeper)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    cleanup_buf struct buf yaml = BUF_INIT(16 << 20);
    cleanup_json cJSON *job = NULL;
    cleanup_arena struct arena a = {0};
    struct losses losses = {.text = &text, .place = "f:1", .one_file = true, .subject = "s"};
    struct yaml_tree *tree;
    struct err err = {0};

    if (convert_job(jobfile_object(entry), entries, torchkeeper, &losses, &job, &err) < 0) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        return;
    }
    cleanup_trainjob struct trainjob *decoded = jobfile_decode(job, "ns", &err);
    MUST(decoded);
    MUST(yaml_write(job, &yaml, &err) == 0);
    if (yaml_tree_parse("f", buf_str(&yaml), yaml.len, &a, &tree, &err) < 0)
        return; /* deeper or larger than what is read */
    cleanup_json cJSON *again = yaml_json(tree);
    MUST(json_hash(again) == json_hash(job));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_json cJSON *entries = cJSON_CreateArray();
    struct err err = {0};
    const cJSON *entry;

    if (jobfile_parse("f.yaml", (const char *)data, size, entries, &err) < 0) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        return 0;
    }
    cJSON_ArrayForEach(entry, entries)
    {
        for (int torchkeeper = 0; torchkeeper < 2 && convert_kind_of(jobfile_object(entry)) == CONVERT_JOB;
             torchkeeper++)
            convert(entry, entries, torchkeeper);
    }
    return 0;
}
