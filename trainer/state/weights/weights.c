/* weights.c - map a weights file into memory and open it with the reader of its format. */
#include "trainer/state/weights/weights.h"

#include "trainer/data/first_bytes.h"
#include "trainer/state/files/torch_unzip.h"
#include "trainer/state/weights/llmc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int map(struct weights *w, const char *path, struct err *err)
{
    /* A FIFO is refused, not waited for. */
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st))
        return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_FATAL, errno, "%.160s", path);
    if (!S_ISREG(st.st_mode) || !st.st_size)
        return err_set(err, ERR_INVALID, "%.160s: expected a file that is not empty", path);
    w->map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (w->map == MAP_FAILED) {
        w->map = NULL;
        return err_errno(err, ERR_FATAL, errno, "%.160s: cannot map", path);
    }
    w->bytes = (size_t)st.st_size;
    return 0;
}

static bool is_dict(const struct pt_value *v)
{
    return v && (v->type == PT_DICT || v->type == PT_ORDERED_DICT);
}

static int list_dict(struct weights *w, const struct pt_value *dict, struct err *err)
{
    struct tensor_row *row = arena_array(&w->arena, dict->dict.len + 1, struct tensor_row);
    size_t n = 0;

    for (size_t i = 0; i < dict->dict.len; i++) {
        const struct pt_item *item = &dict->dict.items[i];
        if (item->key.type != PT_STR || item->value.type != PT_TENSOR)
            return err_set(err, ERR_INVALID, "%.80s: expected a state_dict: names and tensors",
                           item->key.type == PT_STR ? item->key.s : "a key is not a name");
        row[n++] = (struct tensor_row){item->key.s, item->value.tensor};
    }
    w->list = (struct tensor_list){row, n};
    return 0;
}

static int parse_pt(struct weights *w, struct err *err)
{
    static const char *const inside[] = {"model", "state_dict", "model_state_dict"};
    struct pt_value root;

    if (torch_zip_read(w->map, w->bytes, &w->arena, &root, err))
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
        const struct pt_value *v = pt_find(&root, inside[i]);
        if (is_dict(v))
            return list_dict(w, v, err);
    }
    return is_dict(&root) ? list_dict(w, &root, err) : err_set(err, ERR_INVALID, "expected a state_dict");
}

static int parse(struct weights *w, struct err *err)
{
    struct llmc_header header;
    char name[FIRST_BYTES_NAME];

    if (llmc_is(w->map, w->bytes)) {
        if (llmc_parse(w->map, w->bytes, &w->arena, &header, &w->list, err))
            return -1;
        w->heads = header.heads;
        return 0;
    }
    if (w->bytes >= 4 && memcmp(w->map, "PK\3\4", 4) == 0)
        return parse_pt(w, err);
    if (!safetensors_parse(w->map, w->bytes, &w->arena, &w->list, err))
        return 0;
    if (first_bytes_name(w->map, w->bytes, name))
        return err_set(err, ERR_INVALID, "%s, expected .safetensors, .pt or llm.c's weights", name);
    const bool sure = w->bytes > 8 && ((const char *)w->map)[8] == '{';
    return err_wrap(err, "%sread as .safetensors", sure ? "" : "neither llm.c's format nor .pt; ");
}

int weights_open(struct weights *w, const char *path, struct err *err)
{
    *w = (struct weights){0};
    if (map(w, path, err))
        return -1;
    int rc = parse(w, err);
    if (!rc && w->list.len > WEIGHTS_TENSORS_MAX)
        rc = err_set(err, ERR_INVALID, "%zu tensors, expected at most %d", w->list.len, WEIGHTS_TENSORS_MAX);
    if (!rc)
        return 0;
    weights_close(w);
    return err_wrap(err, "%.120s", path);
}

void weights_close(struct weights *w)
{
    if (w->map)
        munmap(w->map, w->bytes);
    arena_release(&w->arena);
    *w = (struct weights){0};
}
