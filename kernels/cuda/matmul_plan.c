/* matmul_plan.c - describe a product to cuBLASLt, ask it for an algorithm, print the choice. */
#include "kernels/cuda/matmul_plan.h"

#include <stdio.h>

enum { ALIGN_MAX = 256 };

/* cuBLAS takes 256 bytes for granted; parameters lie one behind the other, at any multiple of 4. NULL is aligned. */
unsigned plan_align_of(const void *p)
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
bool plan_key_fits(const struct plan_key *k)
{
    return k->extra < EXTRA_GELU ||
           (k->align_aux >= PLAN_ALIGN_EPILOGUE && (k->extra == EXTRA_COLUMN_SUMS || k->m % 8 == 0));
}

struct plan_key plan_key_of(const struct product *p)
{
    return (struct plan_key){.m = p->m,
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
                             .align_a = plan_align_of(p->a),
                             .align_b = plan_align_of(p->b),
                             .align_c = plan_align_of(p->c),
                             .align_bias = plan_align_of(p->bias),
                             .align_aux = plan_align_of(p->aux)};
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
int plan_point(const struct plan_maker *m, const struct plan *plan, const struct product *p)
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
int plan_describe(const struct plan_maker *m, struct plan *p, const struct product *product)
{
    const struct blas *b = &m->blas;
    const struct plan_key *k = &p->key;
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
           plan_point(m, p, product) || /* alignment of what is pointed to is a part of the question */
           b->MatrixLayoutCreate(&p->a, type_of(k->of), a_rows, a_cols, k->lda) ||
           b->MatrixLayoutCreate(&p->b, type_of(k->of), b_rows, b_cols, k->ldb) ||
           b->MatrixLayoutCreate(&p->c, type_of(k->to), (uint64_t)k->m, (uint64_t)k->n, k->ldc);
}

int plan_choose(const struct plan_maker *m, struct plan *p)
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

void plan_release(const struct plan_maker *m, struct plan *p)
{
    const struct blas *b = &m->blas;

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

static const char *extra_name(int extra)
{
    static const char *const NAME[] = {[EXTRA_RELU] = "ReLU",
                                       [EXTRA_GELU] = "GELU",
                                       [EXTRA_GELU_GRADIENT] = "slope of GELU",
                                       [EXTRA_COLUMN_SUMS] = "sums of columns"};

    return NAME[extra];
}

static const char *element_name(int element)
{
    return element == ELEMENT_BF16 ? "bf16" : "f32";
}

void plan_print_key(const struct plan_key *k)
{
    fprintf(stderr, "cuBLAS %d x %d x %d, %s to %s%s%s%s%s%s%s: ", k->m, k->n, k->k, element_name(k->of),
            element_name(k->to), k->a_transposed ? ", A transposed" : "",
            k->b_transposed ? ", B transposed" : "", k->bias ? ", bias" : "", k->extra ? ", " : "",
            k->extra ? extra_name(k->extra) : "", k->more ? ", added" : "");
}

void plan_print(const struct plan_maker *m, const struct plan *p)
{
    uint64_t does = 0;
    int32_t id = -1;
    int32_t splits = -1;
    size_t written;

    plan_print_key(&p->key);
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
        fprintf(stderr, ", %s apart (%s)", extra_name(p->key.extra), p->apart);
    fprintf(stderr, "\n");
}
