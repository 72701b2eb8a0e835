/* init.c - compute the bounds of torch.nn's initial weights in double, then fill each tensor with uniform numbers. */
#include "trainer/rng/init.h"

#include <math.h>

void init_default(struct torch_rng *g, float *weight, size_t weight_len, float *bias, size_t bias_len,
                  size_t fan_in)
{
    if (fan_in == 0)
        return;
    /* The same steps as kaiming_uniform_, not simplified, so that the last bit matches. */
    double slope = sqrt(5.0);
    double gain = sqrt(2.0 / (1.0 + slope * slope));
    double std = gain / sqrt((double)fan_in);

    double bound = sqrt(3.0) * std;
    torch_rng_uniform(g, -bound, bound, weight, weight_len);
    if (bias) {
        bound = 1.0 / sqrt((double)fan_in);
        torch_rng_uniform(g, -bound, bound, bias, bias_len);
    }
}
