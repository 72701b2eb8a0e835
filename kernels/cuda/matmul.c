/* matmul.c - matrix products by cuBLASLt: make a plan once per shape (matmul_plan.h), keep it, run it. */
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/matmul_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Several times what the layers of a model need, at two sizes of batch. A product that finds no room is asked for anew
 * each time. */
enum { PLANS_MAX = 512 };

struct matmul {
    bool loaded, prints; /* TK_CUBLAS is not off; it is print */
    struct plan_maker maker;
    int plans;
    struct plan plan[PLANS_MAX + 1]; /* the last: for those that find no room */
};

static int precision_without_cublas(enum precision precision, struct err *err)
{
    return precision == PRECISION_F32
               ? 0
               : err_set(err, ERR_INVALID,
                         "--precision: only cuBLAS has another than f32, and TK_CUBLAS is off");
}

static int load(struct matmul *m, struct err *err)
{
    if (blas_load(&m->maker.blas, err))
        return -1;
    const size_t version = m->maker.blas.GetVersion();
    cublasStatus_t bad = m->maker.blas.Create(&m->maker.handle);
    return bad ? err_set(err, ERR_FATAL, "cuBLAS %zu.%zu.%zu does not start on this GPU: status %d",
                         version / 10000, version / 100 % 100, version % 100, (int)bad)
               : 0;
}

struct matmul *matmul_make(enum precision precision, struct err *err)
{
    struct matmul *m = calloc(1, sizeof(*m));

    if (!m) {
        err_memory(err, "out of memory");
        return NULL;
    }
    m->maker.precision = precision;
    const char *env = getenv("TK_CUBLAS");
    const bool off = env && strcmp(env, "off") == 0;
    if (off ? precision_without_cublas(precision, err) : load(m, err)) {
        free(m);
        return NULL;
    }
    m->loaded = !off;
    m->prints = env && strcmp(env, "print") == 0;
    return m;
}

void matmul_free(struct matmul *m)
{
    if (!m)
        return;
    for (int i = 0; i <= PLANS_MAX && m->loaded; i++)
        plan_release(&m->maker, &m->plan[i]);
    if (m->maker.handle)
        m->maker.blas.Destroy(m->maker.handle);
    free(m);
}

/* What failed on the GPU is an error, what cuBLAS has not is not. */
static bool run_plan(struct cuda *c, struct plan *plan, const struct product *p)
{
    const struct matmul *m = c->matmul;
    const float by = 1, kept = p->more ? 1 : 0;
    void *to = plan->apart && p->extra == EXTRA_GELU ? p->aux : p->c;

    if (plan_point(&m->maker, plan, p))
        return false;
    const cublasStatus_t bad =
        m->maker.blas.Matmul(m->maker.handle, plan->desc, &by, p->a, plan->a, p->b, plan->b, &kept, to,
                             plan->c, to, plan->c, &plan->algo, c->parts, plan->workspace_bytes, c->stream);
    if (bad == CUBLAS_STATUS_EXECUTION_FAILED)
        cuda_note(c, cudaErrorLaunchFailure, "a product by cuBLAS");
    if (bad && m->prints) {
        plan_print_key(&plan->key);
        fprintf(stderr, "refused when it was run: status %d\n", (int)bad);
    }
    return !bad;
}

/* Why the extra is left to the caller, whatever cuBLAS has; or NULL. */
static const char *apart_of(const struct plan_key *k)
{
    if (!k->extra)
        return NULL;
    return k->more ? "added" : plan_key_fits(k) ? NULL : "alignment";
}

/* false: cuBLAS has nothing for it. */
static bool choose(const struct matmul *m, struct plan *p, const struct plan_key *key, const char *apart,
                   const struct product *product)
{
    plan_release(&m->maker, p);
    p->key = *key;
    p->apart = apart;
    p->none = plan_describe(&m->maker, p, product) || plan_choose(&m->maker, p);
    return !p->none;
}

/* Choose again, without the extra. false: there was none, or cuBLAS has nothing for the rest either. */
static bool choose_apart(const struct matmul *m, struct plan *p, const char *why,
                         const struct product *product)
{
    const struct plan_key key = p->key;

    return key.extra && !p->apart && choose(m, p, &key, why, product);
}

static struct plan *plan_of(struct matmul *m, const struct plan_key *key, const struct product *product)
{
    int i = 0;

    while (i < m->plans && memcmp(&m->plan[i].key, key, sizeof(*key)) != 0)
        i++;
    struct plan *p = &m->plan[i];
    if (i < m->plans)
        return p;
    if (m->plans < PLANS_MAX)
        m->plans++;
    if (!choose(m, p, key, apart_of(key), product))
        (void)choose_apart(m, p, "no algorithm", product);
    if (m->prints)
        plan_print(&m->maker, p);
    return p;
}

static bool bf16_rows_aligned(const void *p, int ld)
{
    return plan_align_of(p) >= PLAN_ALIGN_EPILOGUE && ld % (PLAN_ALIGN_EPILOGUE / 2) == 0;
}

bool matmul_takes_bias(const struct cuda *c, const struct product *p)
{
    if (!c->matmul->loaded)
        return true;
    return plan_align_of(p->bias) >= PLAN_ALIGN_EPILOGUE &&
           (p->of != ELEMENT_BF16 || (bf16_rows_aligned(p->a, p->lda) && bf16_rows_aligned(p->b, p->ldb) &&
                                      bf16_rows_aligned(p->c, p->ldc ? p->ldc : p->m)));
}

bool matmul_run(struct cuda *c, struct product *p)
{
    if (!c->matmul->loaded)
        return false;
    struct plan_key key = plan_key_of(p);
    struct plan *plan = plan_of(c->matmul, &key, p);
    while (!plan->none && !run_plan(c, plan, p)) {
        plan->none = !choose_apart(c->matmul, plan, "refused", p);
        if (!plan->none && c->matmul->prints)
            plan_print(&c->matmul->maker, plan);
    }
    if (plan->none)
        return false;
    if (!plan->apart)
        p->extra = EXTRA_NONE;
    return true;
}
