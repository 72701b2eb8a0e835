/* files.c - read YAML files that the user names. */
#include "cli/jobfile.h"

#include "common/fsutil.h"
#include "common/yaml.h"

#include <string.h>

int jobfile_read(const char *path, cJSON *entries, struct err *err)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    cleanup_buf struct buf text = BUF_INIT(YAML_TREE_BYTES_MAX);

    if (fs_read(is_stdin ? "/dev/stdin" : path, &text, err) < 0)
        return -1;
    return jobfile_parse(is_stdin ? "stdin" : path, buf_str(&text), text.len, entries, err);
}
