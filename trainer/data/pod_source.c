/* pod_source.c - find a pod's data set in a folder, or download it. */
#include "trainer/data/pod_data.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool is_published(const struct data_spec *spec)
{
    return spec->format == &format_idx && !spec->train;
}

static bool is_fashion(const struct pod_data_options *o)
{
    return o->source.spec->dataset == DATASET_FASHION_MNIST;
}

static const char *folder_of(const struct pod_data_options *o)
{
    return is_fashion(o) ? "FashionMNIST/raw" : "MNIST/raw";
}

static int may_not_write(const struct pod_data_options *o, int code, struct err *err)
{
    char text[64];

    return err_set(
        err, ERR_NOT_FOUND,
        "--data %.40s: no %s/train-images-idx3-ubyte[.gz] there, and uid %u may not write it (%.24s): "
        "give --data a folder it may write, or one with the files (Debian: dataset-fashion-mnist)",
        o->source.dir, folder_of(o), (unsigned)geteuid(), strerror_r(code, text, sizeof(text)));
}

/* Set the error kind, and so the exit code: if no server is reached, files or an option are missing
 * (permanent). */
static int no_download(const struct pod_data_options *o, struct err *err)
{
    const struct err why = *err;

    if (why.code == EINTR)
        return err_set(err, ERR_TRANSIENT, "--data %.100s: no data, and the download was stopped",
                       o->source.dir);
    if (why.kind == ERR_NOT_FOUND && why.code == ENETUNREACH)
        return err_set(err, ERR_NOT_FOUND,
                       "--data %.40s: expected %s/{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] in it, "
                       "and cannot download them (--no_download: do not try): %.80s",
                       o->source.dir, folder_of(o), why.msg);
    if (why.code == EACCES || why.code == EPERM || why.code == EROFS)
        return may_not_write(o, why.code, err);
    return err_set(err, why.kind, "--data %.40s: no %s, and no download: %.200s", o->source.dir,
                   is_fashion(o) ? "Fashion-MNIST" : "MNIST", why.msg);
}

/* The error for data that cannot be downloaded. */
static void not_there(const struct pod_data_options *o, struct err *err)
{
    const struct err why = *err;

    err_set(err, why.kind, "%.150s: %s what is read", why.msg,
            o->source.spec->format == &format_tokens ? "--data and --train_files say" : "--data says");
}

struct source *pod_data_find(const struct pod_data_options *o, struct err *err)
{
    struct source *s = source_open(&o->source, err);

    if (s || err->kind != ERR_NOT_FOUND)
        return s;
    if (!is_published(o->source.spec)) {
        not_there(o, err);
        return NULL;
    }
    if (!o->download) {
        err_wrap(err, "--data, --no_download");
        return NULL;
    }
    if (fetch_dataset(o->source.dir, (enum dataset_name)o->source.spec->dataset, &o->limits, err)) {
        (void)no_download(o, err);
        return NULL;
    }
    return source_open(&o->source, err);
}
