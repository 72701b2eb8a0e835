/* cublas.cc - cuBLAS's light interface by plain loops: column-major, as its manual describes cublasLtMatmul. An
 * epilogue keeps NaN, and can be missing.
 *
 * It refuses a call that differs from what the caller announced: addresses less aligned than the preference promised, more workspace than
 * allowed, and reduction schemes that add in no fixed order. What could fault or race on a GPU ends the program: an epilogue's
 * bias that is not aligned to 16 bytes, and one workspace on two streams.
 */
#include "cudart.h"
#include "emulate.h"

#include "kernels/cuda/blas.h"
#include "kernels/cuda/element.cuh"

#include <map>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace
{

struct desc {
    cublasComputeType_t compute;
    cublasOperation_t ta, tb;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    void *aux;
    int64_t ld_aux;
};

struct layout {
    cudaDataType type;
    uint64_t rows, cols;
    int64_t ld;
};

struct handle {
    std::map<const void *, cudaStream_t> workspaces; /* whose each is */
};

struct preference {
    uint64_t workspace;
    uint32_t align_a, align_b, align_c, align_d, schemes;
};

desc *of(cublasLtMatmulDesc_t d)
{
    return (desc *)d;
}

const layout *of(cublasLtMatrixLayout_t l)
{
    return (const layout *)l;
}

cublasStatus_t create(cublasLtHandle_t *ret)
{
    *ret = (cublasLtHandle_t) new handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t destroy(cublasLtHandle_t h)
{
    delete (handle *)h;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t desc_create(cublasLtMatmulDesc_t *ret, cublasComputeType_t compute, cudaDataType_t scale)
{
    if (scale != CUDA_R_32F)
        return CUBLAS_STATUS_INVALID_VALUE;
    *ret = (cublasLtMatmulDesc_t) new desc{
        compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t desc_destroy(cublasLtMatmulDesc_t d)
{
    delete of(d);
    return CUBLAS_STATUS_SUCCESS;
}

template <class T> cublasStatus_t set(T *to, const void *from, size_t bytes)
{
    if (bytes != sizeof(T))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t desc_set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, const void *from,
                        size_t bytes)
{
    switch ((int)what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&of(d)->ta, from, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&of(d)->tb, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&of(d)->epilogue, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&of(d)->bias, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return set(&of(d)->aux, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return set(&of(d)->ld_aux, from, bytes);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t layout_create(cublasLtMatrixLayout_t *ret, cudaDataType type, uint64_t rows, uint64_t cols,
                             int64_t ld)
{
    if ((type != CUDA_R_32F && type != CUDA_R_16BF) || ld < (int64_t)rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    *ret = (cublasLtMatrixLayout_t) new layout{type, rows, cols, ld};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t layout_destroy(cublasLtMatrixLayout_t l)
{
    delete of(l);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t preference_create(cublasLtMatmulPreference_t *ret)
{
    *ret = (cublasLtMatmulPreference_t) new preference{0, 256, 256, 256, 256, CUBLASLT_REDUCTION_SCHEME_MASK};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t preference_destroy(cublasLtMatmulPreference_t p)
{
    delete (preference *)p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t preference_set(cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t what,
                              const void *from, size_t bytes)
{
    preference *p = (preference *)to;
    switch ((int)what) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&p->workspace, from, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(&p->schemes, from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return set(&p->align_a, from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return set(&p->align_b, from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return set(&p->align_c, from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set(&p->align_d, from, bytes);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

bool missing;
int lacks;       /* an epilogue; 0: none */
int next_status; /* of the next product; 0: as it is */

bool aligned(const void *p, uint32_t to)
{
    return ((uintptr_t)p & (to - 1)) == 0;
}

bool wants_bias(const desc *d)
{
    return d->epilogue == CUBLASLT_EPILOGUE_BIAS || d->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
           d->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS || d->epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

bool wants_aux(const desc *d)
{
    return d->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS || d->epilogue == CUBLASLT_EPILOGUE_DGELU;
}

/* What an epilogue is given, by the rules of its attributes. */
cublasStatus_t check_epilogue(const desc *d, const layout *to, uint32_t align_d)
{
    switch ((int)d->epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_BGRADB:
        break;
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (d->epilogue == lacks)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (wants_bias(d) && !aligned(d->bias, 16))
        emulate_broken("cuBLAS's epilogue takes a bias that is not aligned to 16 bytes");
    if (wants_bias(d) && (!d->bias || !aligned(d->bias, align_d)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (wants_aux(d) && (!d->aux || !aligned(d->aux, 16) || d->ld_aux % 8 || d->ld_aux < (int64_t)to->rows))
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* The algorithm carries what it was promised. */
cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t to,
                         cublasLtMatmulPreference_t like, int asked, cublasLtMatmulHeuristicResult_t *ret,
                         int *found)
{
    const preference *p = (const preference *)like;
    static_assert(sizeof(*p) <= sizeof(ret->algo), "an algorithm holds a preference");
    if (asked < 1 || (p->schemes & CUBLASLT_REDUCTION_SCHEME_INPLACE))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (cublasStatus_t bad = check_epilogue(of(d), of(to), p->align_d))
        return bad;
    memset(ret, 0, sizeof(*ret));
    memcpy(&ret->algo, p, sizeof(*p));
    ret->workspaceSize = p->workspace < 4096 ? 0 : 4096;
    ret->state = CUBLAS_STATUS_SUCCESS;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* Every product claims tensor cores. */
cublasStatus_t capability(const cublasLtMatmulAlgo_t *, cublasLtMatmulAlgoCapAttributes_t what, void *ret,
                          size_t bytes, size_t *written)
{
    const uint64_t hmma = CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA;
    if (what != CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS || bytes != sizeof(hmma))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(ret, &hmma, sizeof(hmma));
    *written = sizeof(hmma);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t configuration(const cublasLtMatmulAlgo_t *, cublasLtMatmulAlgoConfigAttributes_t what,
                             void *ret, size_t bytes, size_t *written)
{
    const int32_t value = what == CUBLASLT_ALGO_CONFIG_ID ? 66 : 3;
    if ((what != CUBLASLT_ALGO_CONFIG_ID && what != CUBLASLT_ALGO_CONFIG_SPLITK_NUM) ||
        bytes != sizeof(value))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(ret, &value, sizeof(value));
    *written = sizeof(value);
    return CUBLAS_STATUS_SUCCESS;
}

size_t version()
{
    return 130100;
}

/* An element of either type. */
float get(const void *p, cudaDataType type, uint64_t i)
{
    return type == CUDA_R_16BF ? (float)((const bf16 *)p)[i] : ((const float *)p)[i];
}

void put(void *p, cudaDataType type, uint64_t i, float x)
{
    if (type == CUDA_R_16BF)
        ((bf16 *)p)[i] = (bf16)x;
    else
        ((float *)p)[i] = x;
}

/* What is made of an element of a product, in f32. Behind operands whose rows are not aligned to 16 bytes cuBLAS 13.0 adds a
 * bias to what is in bf16 already (seen on an H200): `rounds`. */
struct epilogue {
    desc how;
    layout d;
    bool rounds;

    float of(float x, uint64_t i, uint64_t j) const
    {
        if (rounds && wants_bias(&how))
            x = (float)(bf16)x;
        switch ((int)how.epilogue) {
        case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
            x += get(how.bias, d.type, i);
            put(how.aux, d.type, j * (uint64_t)how.ld_aux + i, x);
            return x * gate(x);
        case CUBLASLT_EPILOGUE_DGELU:
            return x * slope(get(how.aux, d.type, j * (uint64_t)how.ld_aux + i));
        case CUBLASLT_EPILOGUE_BIAS:
            return x + get(how.bias, d.type, i);
        case CUBLASLT_EPILOGUE_RELU_BIAS:
            return rectified(x + get(how.bias, d.type, i));
        case CUBLASLT_EPILOGUE_RELU:
            return rectified(x);
        default:
            return x;
        }
    }
    /* Of the GELU by tanh: how much of x passes, and the slope. */
    static float gate(float x)
    {
        return 0.5F * (1 + tanhf(0.797884561F * (x + 0.044715F * x * x * x)));
    }
    static float slope(float x)
    {
        const float all = gate(x);
        return all + 2 * x * all * (1 - all) * 0.797884561F * (1 + 3 * 0.044715F * x * x);
    }
    static float rectified(float x)
    {
        return x < 0 ? 0 : x;
    }
};

/* The sums over k of op(B), B itself or transposed. */
void sum_columns(const epilogue &e, const void *pb, const layout &b, uint64_t k)
{
    for (uint64_t j = 0; j < e.d.cols; j++) {
        float sum = 0;
        for (uint64_t l = 0; l < k; l++)
            sum += get(pb, b.type, e.how.tb == CUBLAS_OP_T ? j + l * (uint64_t)b.ld : l + j * (uint64_t)b.ld);
        put((void *)e.how.bias, e.d.type, j, sum);
    }
}

cublasStatus_t multiply(cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *pa,
                        cublasLtMatrixLayout_t ha, const void *pb, cublasLtMatrixLayout_t hb,
                        const void *beta, const void *pc, cublasLtMatrixLayout_t, void *pd,
                        cublasLtMatrixLayout_t hd, const cublasLtMatmulAlgo_t *algo, void *workspace,
                        size_t workspace_bytes, cudaStream_t stream)
{
    const desc how = *of(d);
    const layout la = *of(ha), lb = *of(hb), ld = *of(hd);
    const float by = *(const float *)alpha;
    const float kept = *(const float *)beta;
    preference promised;
    memcpy(&promised, algo, sizeof(promised));
    uint64_t k = how.ta == CUBLAS_OP_T ? la.rows : la.cols;
    if ((how.tb == CUBLAS_OP_T ? lb.cols : lb.rows) != k ||
        (how.ta == CUBLAS_OP_T ? la.cols : la.rows) != ld.rows ||
        (how.tb == CUBLAS_OP_T ? lb.rows : lb.cols) != ld.cols || la.type != lb.type || pc != pd)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!aligned(pa, promised.align_a) || !aligned(pb, promised.align_b) || !aligned(pd, promised.align_d) ||
        workspace_bytes > promised.workspace)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cublasStatus_t bad = check_epilogue(&how, &ld, promised.align_d))
        return bad;
    if (workspace_bytes && ((handle *)h)->workspaces.emplace(workspace, stream).first->second != stream)
        emulate_broken("one workspace of cuBLAS is used on two streams");
    if (const int status = next_status) {
        next_status = 0;
        return (cublasStatus_t)status;
    }
    const epilogue end = {how, ld, ld.type == CUDA_R_16BF && (la.ld % 8 || lb.ld % 8 || ld.ld % 8)};
    emulate_queue(stream, [=] {
        memset(workspace, 0xff, workspace_bytes);
        if (how.epilogue == CUBLASLT_EPILOGUE_BGRADB)
            sum_columns(end, pb, lb, k);
        for (uint64_t j = 0; j < ld.cols; j++)
            for (uint64_t i = 0; i < ld.rows; i++) {
                float sum = 0;
                for (uint64_t l = 0; l < k; l++)
                    sum += get(pa, la.type,
                               how.ta == CUBLAS_OP_T ? i * (uint64_t)la.ld + l : l * (uint64_t)la.ld + i) *
                           get(pb, lb.type,
                               how.tb == CUBLAS_OP_T ? l * (uint64_t)lb.ld + j : j * (uint64_t)lb.ld + l);
                const uint64_t at = j * (uint64_t)ld.ld + i;
                sum = by * sum + (kept != 0 ? kept * get(pd, ld.type, at) : 0);
                put(pd, ld.type, at, end.of(sum, i, j));
            }
    });
    return CUBLAS_STATUS_SUCCESS;
}

} // namespace

extern "C" void fake_cublas_missing(bool on)
{
    missing = on;
}

extern "C" void fake_cublas_lacks(int epilogue)
{
    lacks = epilogue;
}

extern "C" void fake_cublas_fails(int status)
{
    next_status = status;
}

extern "C" int blas_load(struct blas *b, struct err *err)
{
    if (missing)
        return err_set(err, ERR_INVALID, "cuBLAS: libcublasLt.so.13: cannot open shared object file");
    *b = blas{create,         destroy,           desc_create,
              desc_destroy,   desc_set,          layout_create,
              layout_destroy, preference_create, preference_destroy,
              preference_set, heuristic,         capability,
              configuration,  version,           multiply};
    return 0;
}
