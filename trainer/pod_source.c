/* pod_source.c - data where it lies, else from the network. */
#include "trainer/pod_data.h"

#include <errno.h>
#include <string.h>

static bool is_published(const struct data_spec *spec)
{
    return spec->format == SOURCE_IDX && !spec->train;
}

/* What a person can do about it decides the kind, and with it the exit code: files or an option are missing where no
 * server can be reached (unless it is one that was asked for by name, which may still come up). */
static int no_download(const struct pod_data_options *o, struct err *err)
{
    const bool fashion = o->source.name == DATASET_FASHION_MNIST;
    const struct err why = *err;

    if (why.code == EINTR)
        return err_set(err, ERR_TRANSIENT, "--data %.100s: no data, and the download was stopped",
                       o->source.dir);
    if (why.kind == ERR_NOT_FOUND && why.code == ENETUNREACH && !o->mirror)
        return err_set(err, ERR_NOT_FOUND,
                       "--data %.40s: expected %s/{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] in it, "
                       "and cannot download them (--no_download: do not try): %.80s",
                       o->source.dir, fashion ? "FashionMNIST/raw" : "MNIST/raw", why.msg);
    err_set(err, why.kind, "--data %.40s: no %s, and no download: %.160s", o->source.dir,
            fashion ? "Fashion-MNIST" : "MNIST", why.msg);
    if (why.code == ENETUNREACH)
        err->kind = ERR_TRANSIENT;
    return -1;
}

struct source *pod_data_find(const struct pod_data_options *o, struct err *err)
{
    struct source *s = source_open(&o->source, err);
    struct fetch_limits limits = fetch_limits_default(o->timeout_ms);

    if (s || err->kind != ERR_NOT_FOUND || !is_published(o->source.spec))
        return s;
    if (!o->download) {
        err_wrap(err, "--data, --no_download");
        return NULL;
    }
    limits.ca_file = o->ca_file;
    limits.stopped = o->stopped;
    limits.stop_ctx = o->stop_ctx;
    if (o->download_pause_ms)
        limits.pause_ms = o->download_pause_ms;
    if (fetch_dataset(o->source.dir, o->source.name, o->mirror, &limits, err)) {
        (void)no_download(o, err);
        return NULL;
    }
    return source_open(&o->source, err);
}
