/* matmul.c - matrix products by cuBLASLt: ask once per shape for an algorithm, keep the plan, run it. */
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/blas.h"
#include "kernels/cuda/epilogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Several times what the layers of a model need, at two sizes of batch. A product that finds no room is asked for anew
 * each time, and its extra is left to the caller. */
enum { PLANS_MAX = 512, ALIGN_MAX = 256, ALIGN_EPILOGUE = 16 /* of what epilogues read and write besides */ };

/* What an algorithm is chosen by. No padding: compared as bytes. */
struct key {
    int m, n, k, lda, ldb, ldc;
    int a_transposed, b_transposed, bias, more, extra;
    int of, to;
    unsigned align_a, align_b, align_c, align_bias, align_aux;
};

struct plan {
    struct key key;
    bool none;                    /* cuBLAS has nothing for it, or refused it */
    bool apart;                   /* but for the extra */
    bool final;                   /* whether it is apart is not asked again */
    char why[EPILOGUE_WHY_BYTES]; /* it is apart */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
    size_t workspace_bytes;
};

struct matmul {
    bool loaded, prints, apart; /* TK_CUBLAS is not off; it is print; it is apart */
    struct blas blas;
    cublasLtHandle_t handle;
    enum precision precision;
    int plans;
    struct plan plan[PLANS_MAX + 1]; /* the last: for those that find no room */
};

static void release_plan(const struct blas *b, struct plan *p)
{
    if (p->a)
        b->MatrixLayoutDestroy(p->a);
    if (p->b)
        b->MatrixLayoutDestroy(p->b);
    if (p->c)
        b->MatrixLayoutDestroy(p->c);
    if (p->desc)
        b->MatmulDescDestroy(p->desc);
    *p = (struct plan){0};
}

static int precision_without_cublas(enum precision precision, struct err *err)
{
    return precision == PRECISION_F32
               ? 0
               : err_set(err, ERR_INVALID,
                         "--precision: only cuBLAS has another than f32, and TK_CUBLAS is off");
}

static int load(struct matmul *m, struct err *err)
{
    if (blas_load(&m->blas, err))
        return -1;
    const size_t version = m->blas.GetVersion();
    cublasStatus_t bad = m->blas.Create(&m->handle);
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
    m->precision = precision;
    const char *env = getenv("TK_CUBLAS");
    const bool off = env && strcmp(env, "off") == 0;
    if (off ? precision_without_cublas(precision, err) : load(m, err)) {
        free(m);
        return NULL;
    }
    m->loaded = !off;
    m->prints = env && strcmp(env, "print") == 0;
    m->apart = env && strcmp(env, "apart") == 0;
    return m;
}

void matmul_free(struct matmul *m)
{
    if (!m)
        return;
    for (int i = 0; i <= PLANS_MAX && m->loaded; i++)
        release_plan(&m->blas, &m->plan[i]);
    if (m->handle)
        m->blas.Destroy(m->handle);
    free(m);
}

/* cuBLAS takes 256 bytes for granted; parameters lie one behind the other, at any multiple of 4. NULL is aligned. */
static unsigned align_of(const void *p)
{
    unsigned low = (unsigned)((uintptr_t)p & (ALIGN_MAX - 1));

    return low ? low & -low : ALIGN_MAX;
}

static unsigned lower(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool is_gelu(enum extra extra)
{
    return extra == EXTRA_GELU || extra == EXTRA_GELU_GRADIENT;
}

/* cuBLAS's terms for what lies beside C. */
static bool fits(const struct key *k)
{
    return k->extra < EXTRA_GELU ||
           (k->align_aux >= ALIGN_EPILOGUE && (k->extra == EXTRA_COLUMN_SUMS || k->m % 8 == 0));
}

static struct key key_of(const struct product *p)
{
    return (struct key){.m = p->m,
                        .n = p->n,
                        .k = p->k,
                        .lda = p->lda,
                        .ldb = p->ldb,
                        .ldc = p->ldc ? p->ldc : p->m,
                        .a_transposed = p->a_transposed,
                        .b_transposed = p->b_transposed,
                        .bias = p->bias != NULL,
                        .more = p->more,
                        .extra = (int)p->extra,
                        .of = (int)p->of,
                        .to = (int)p->to,
                        .align_a = align_of(p->a),
                        .align_b = align_of(p->b),
                        .align_c = align_of(p->c),
                        .align_bias = align_of(p->bias),
                        .align_aux = align_of(p->aux)};
}

/* bf16 operands need no word about it. */
static cublasComputeType_t compute_type(enum precision precision, int of)
{
    if (of == ELEMENT_BF16)
        return CUBLAS_COMPUTE_32F;
    switch (precision) {
    case PRECISION_TF32:
        return CUBLAS_COMPUTE_32F_FAST_TF32;
    case PRECISION_BF16:
        return CUBLAS_COMPUTE_32F_FAST_16BF;
    case PRECISION_F32:
        break;
    }
    return CUBLAS_COMPUTE_32F;
}

static cudaDataType_t type_of(int element)
{
    return element == ELEMENT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* Without a bias, and with one; CUBLASLT_EPILOGUE_DEFAULT where there is none. */
static cublasLtEpilogue_t epilogue_of(const struct plan *p)
{
    static const cublasLtEpilogue_t EPILOGUE[][2] = {
        [EXTRA_NONE] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
        [EXTRA_RELU] = {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS},
        [EXTRA_GELU] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
        [EXTRA_GELU_GRADIENT] = {CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DEFAULT},
        [EXTRA_COLUMN_SUMS] = {CUBLASLT_EPILOGUE_BGRADB, CUBLASLT_EPILOGUE_DEFAULT},
    };

    return EPILOGUE[p->apart ? EXTRA_NONE : p->key.extra][p->key.bias];
}

/* What the epilogue reads and writes besides. 0 as long as all went well, like cuBLAS's own status. */
static int point(const struct matmul *m, const struct plan *plan, const struct product *p)
{
    const enum extra extra = plan->apart ? EXTRA_NONE : p->extra;
    const void *bias = extra == EXTRA_COLUMN_SUMS ? p->aux : p->bias;
    const struct blas *b = &m->blas;
    const int64_t ld = p->m;

    if (bias && b->MatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)))
        return -1;
    return is_gelu(extra) &&
           (b->MatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof(ld)) ||
            b->MatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &p->aux,
                                      sizeof(p->aux)));
}

/* 0 as long as all went well. */
static int describe(const struct matmul *m, struct plan *p, const struct product *product)
{
    const struct blas *b = &m->blas;
    const struct key *k = &p->key;
    cublasOperation_t ta = k->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t tb = k->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = epilogue_of(p);
    uint64_t a_rows = (uint64_t)(k->a_transposed ? k->k : k->m);
    uint64_t a_cols = (uint64_t)(k->a_transposed ? k->m : k->k);
    uint64_t b_rows = (uint64_t)(k->b_transposed ? k->n : k->k);
    uint64_t b_cols = (uint64_t)(k->b_transposed ? k->k : k->n);

    return b->MatmulDescCreate(&p->desc, compute_type(m->precision, k->of), CUDA_R_32F) ||
           b->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof(ta)) ||
           b->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof(tb)) ||
           b->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)) ||
           point(m, p, product) || /* alignment of what is pointed to is a part of the question */
           b->MatrixLayoutCreate(&p->a, type_of(k->of), a_rows, a_cols, k->lda) ||
           b->MatrixLayoutCreate(&p->b, type_of(k->of), b_rows, b_cols, k->ldb) ||
           b->MatrixLayoutCreate(&p->c, type_of(k->to), (uint64_t)k->m, (uint64_t)k->n, k->ldc);
}

static int choose(const struct matmul *m, struct plan *p)
{
    const struct blas *b = &m->blas;
    const uint64_t workspace = CUDA_PARTS_BYTES;
    const uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE; /* split sums by way of the workspace */
    cublasLtMatmulPreference_t like = NULL;
    cublasLtMatmulHeuristicResult_t best = {0};
    int found = 0;
    const uint32_t align_c =
        lower(p->key.align_c, is_gelu((enum extra)p->key.extra) ? p->key.align_aux : ALIGN_MAX);
    /* There is no word for what an epilogue reads and writes besides: it is told of as if it were D. */
    const uint32_t align_d = lower(align_c, lower(p->key.align_bias, p->key.align_aux));
    struct {
        cublasLtMatmulPreferenceAttributes_t what;
        const void *value;
        size_t bytes;
    } wish[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &sums, sizeof(sums)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &p->key.align_a, sizeof(uint32_t)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &p->key.align_b, sizeof(uint32_t)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align_c, sizeof(uint32_t)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align_d, sizeof(uint32_t)},
    };

    cublasStatus_t bad = b->MatmulPreferenceCreate(&like);
    for (size_t i = 0; i < ARRAY_LEN(wish) && !bad; i++)
        bad = b->MatmulPreferenceSetAttribute(like, wish[i].what, wish[i].value, wish[i].bytes);
    if (!bad)
        bad = b->MatmulAlgoGetHeuristic(m->handle, p->desc, p->a, p->b, p->c, p->c, like, 1, &best, &found);
    if (like)
        b->MatmulPreferenceDestroy(like);
    if (bad || found < 1 || best.state != CUBLAS_STATUS_SUCCESS)
        return -1;
    p->algo = best.algo;
    p->workspace_bytes = best.workspaceSize;
    return 0;
}

static bool is_recorded(const struct cuda *c)
{
    enum cudaStreamCaptureStatus is;

    return cudaStreamIsCapturing(c->stream, &is) != cudaSuccess || is != cudaStreamCaptureStatusNone;
}

static const char *element_name(int element)
{
    return element == ELEMENT_BF16 ? "bf16" : "f32";
}

static void print_key(const struct key *k)
{
    fprintf(stderr, "cuBLAS %d x %d x %d, %s to %s%s%s%s%s%s%s: ", k->m, k->n, k->k, element_name(k->of),
            element_name(k->to), k->a_transposed ? ", A transposed" : "",
            k->b_transposed ? ", B transposed" : "", k->bias ? ", bias" : "", k->extra ? ", " : "",
            k->extra ? epilogue_name((enum extra)k->extra) : "", k->more ? ", added" : "");
}

static void print_plan(const struct matmul *m, const struct plan *p)
{
    uint64_t does = 0;
    int32_t id = -1;
    int32_t splits = -1;
    size_t written;

    print_key(&p->key);
    if (p->none) {
        fprintf(stderr, "none; a kernel of this program computes it, without tensor cores\n");
        return;
    }
    (void)m->blas.MatmulAlgoConfigGetAttribute(&p->algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof(id), &written);
    (void)m->blas.MatmulAlgoConfigGetAttribute(&p->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits,
                                               sizeof(splits), &written);
    (void)m->blas.MatmulAlgoCapGetAttribute(&p->algo, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &does,
                                            sizeof(does), &written);
    fprintf(stderr, "algorithm %d, split K %d, %s", (int)id, (int)splits,
            does & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK ? "tensor cores" : "no tensor cores");
    if (p->apart)
        fprintf(stderr, ", %s apart (%s)", epilogue_name((enum extra)p->key.extra), p->why);
    fprintf(stderr, "\n");
}

/* What failed on the GPU is an error, what cuBLAS has not is not. */
static bool run_plan(struct cuda *c, struct plan *plan, const struct product *p, float by, float kept)
{
    const struct matmul *m = c->matmul;
    void *to = plan->apart && p->extra == EXTRA_GELU ? p->aux : p->c;

    if (point(m, plan, p))
        return false;
    const cublasStatus_t bad =
        m->blas.Matmul(m->handle, plan->desc, &by, p->a, plan->a, p->b, plan->b, &kept, to, plan->c, to,
                       plan->c, &plan->algo, c->parts, plan->workspace_bytes, c->stream);
    if (bad == CUBLAS_STATUS_EXECUTION_FAILED)
        cuda_note(c, cudaErrorLaunchFailure, "a product by cuBLAS");
    if (bad && m->prints) {
        print_key(&plan->key);
        fprintf(stderr, "refused when it was run: status %d\n", (int)bad);
    }
    return !bad;
}

/* Why the extra is left to the caller, before cuBLAS is asked for it; or NULL. */
static const char *apart_of(const struct matmul *m, const struct plan *p)
{
    if (m->apart && p->key.extra != EXTRA_RELU)
        return "TK_CUBLAS";
    if (p->key.more)
        return "added";
    if (!fits(&p->key))
        return "alignment";
    return p == &m->plan[PLANS_MAX] ? "too many kinds of products" : NULL;
}

/* Whether the plan with the extra may be used. If not, it says why, and whether that is for good. */
static bool try_extra(struct cuda *c, struct plan *p, const struct product *product)
{
    const char *why = apart_of(c->matmul, p);

    p->final = true;
    if (!why && (describe(c->matmul, p, product) || choose(c->matmul, p)))
        why = "no algorithm";
    if (!why && is_recorded(c)) {
        why = "recorded";
        p->final = false;
    }
    if (why) {
        snprintf(p->why, sizeof(p->why), "%s", why);
        return false;
    }
    const enum epilogue_verdict verdict = epilogue_ask(c, p, product, run_plan, p->why);
    p->final = verdict != EPILOGUE_UNSURE;
    return verdict == EPILOGUE_HOLDS;
}

/* Without the extra, when that cannot be used. */
static void make_plan(struct cuda *c, struct plan *p, const struct key *key, const struct product *product)
{
    struct matmul *m = c->matmul;

    release_plan(&m->blas, p);
    p->key = *key;
    if (!key->extra || !try_extra(c, p, product)) {
        struct plan apart = {.key = *key, .apart = key->extra, .final = p->final || !key->extra};
        memcpy(apart.why, p->why, sizeof(apart.why));
        release_plan(&m->blas, p);
        *p = apart;
        p->none = describe(m, p, product) || choose(m, p);
    }
    if (m->prints)
        print_plan(m, p);
}

static struct plan *plan_of(struct cuda *c, const struct key *key, const struct product *product)
{
    struct matmul *m = c->matmul;
    int i = 0;

    while (i < m->plans && memcmp(&m->plan[i].key, key, sizeof(*key)) != 0)
        i++;
    struct plan *p = &m->plan[i];
    if (i < m->plans && (p->final || is_recorded(c)))
        return p;
    if (i == m->plans && m->plans < PLANS_MAX)
        m->plans++;
    make_plan(c, p, key, product);
    return p;
}

bool matmul_takes_bias(const struct cuda *c, const void *bias)
{
    return !c->matmul->loaded || align_of(bias) >= ALIGN_EPILOGUE;
}

bool matmul_run(struct cuda *c, struct product *p)
{
    if (!c->matmul->loaded)
        return false;
    struct key key = key_of(p);
    struct plan *plan = plan_of(c, &key, p);
    if (!plan->none)
        plan->none = !run_plan(c, plan, p, 1, p->more ? 1 : 0);
    if (plan->none)
        return false;
    if (!plan->apart)
        p->extra = EXTRA_NONE;
    return true;
}
