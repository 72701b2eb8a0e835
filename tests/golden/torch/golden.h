/* golden.h - numbers of PyTorch 2.15.0, written by make.py. CRCs are CRC-32 of little-endian values. */
#ifndef TK_GOLDEN_TORCH_H
#define TK_GOLDEN_TORCH_H

#include <stdint.h>

static const uint32_t golden_uniform_seed1[8] = {0x3f01f425U, 0x3cf01d60U, 0x3e1cbe30U, 0x3ef82890U,
                                                 0xbe620404U, 0x3f0cc389U, 0x3e16ab2cU, 0x3f011e85U};
#define GOLDEN_NORMAL_15 0x98b825abU
#define GOLDEN_NORMAL_16 0xde397a44U
#define GOLDEN_NORMAL_17 0xdc625e76U
#define GOLDEN_NORMAL_100003 0x7c7acf56U
static const uint32_t golden_randperm_10[10] = {5U, 6U, 1U, 2U, 0U, 8U, 9U, 3U, 7U, 4U};
#define GOLDEN_RANDPERM_1 0x2144df1cU
#define GOLDEN_RANDPERM_1000 0xd5f232f8U
#define GOLDEN_RANDPERM_60000 0xaee30cbbU
#define GOLDEN_MNIST_CNN_SEED1 0x2576b2beU
#define GOLDEN_SPLIT_FIRST_SEED1 0x7c0917adU
#define GOLDEN_SPLIT_SECOND_SEED1 0x302c49caU
#define GOLDEN_MNIST_CNN_SEED2 0x828ba9e3U
#define GOLDEN_SPLIT_FIRST_SEED2 0xc1aafaa9U
#define GOLDEN_SPLIT_SECOND_SEED2 0xb8be888bU
#define GOLDEN_MNIST_CNN_SEED3 0x8aa8511dU
#define GOLDEN_SPLIT_FIRST_SEED3 0xd3e16fbdU
#define GOLDEN_SPLIT_SECOND_SEED3 0xdae3df75U
static const uint32_t golden_linear_3_2_seed1[8] = {0x3e985043U, 0xbe82790eU, 0xbde53973U, 0x3e8abf3dU,
                                                    0xbf0b255cU, 0x3eb14747U, 0xbdf3409aU, 0x3e9662eaU};
#define GOLDEN_NOBIAS_THEN_GROUPED 0xba5c911cU
static const struct golden_sampler {
    int items, world, shuffle, epoch, len;
    uint32_t crc; /* of all ranks' items, one rank after the other */
} golden_samplers[] = {
    {10, 1, 0, 0, 10, 0x8def7902U},       {10, 1, 0, 2, 10, 0x8def7902U},
    {10, 1, 1, 0, 10, 0x768270c6U},       {10, 1, 1, 2, 10, 0xb8170c75U},
    {10, 3, 0, 0, 4, 0x8e161792U},        {10, 3, 0, 2, 4, 0x8e161792U},
    {10, 3, 1, 0, 4, 0x170a5298U},        {10, 3, 1, 2, 4, 0xb92ef204U},
    {10, 4, 0, 0, 3, 0xa19ee054U},        {10, 4, 0, 2, 3, 0xa19ee054U},
    {10, 4, 1, 0, 3, 0xf35cdc19U},        {10, 4, 1, 2, 3, 0xa801df96U},
    {7, 16, 0, 0, 1, 0xd68d67f8U},        {7, 16, 0, 2, 1, 0xd68d67f8U},
    {7, 16, 1, 0, 1, 0x99e42e4bU},        {7, 16, 1, 2, 1, 0x7537840cU},
    {1, 5, 0, 0, 1, 0x0fd59b8dU},         {1, 5, 0, 2, 1, 0x0fd59b8dU},
    {1, 5, 1, 0, 1, 0x0fd59b8dU},         {1, 5, 1, 2, 1, 0x0fd59b8dU},
    {12, 4, 0, 0, 3, 0x3a90ba1cU},        {12, 4, 0, 2, 3, 0x3a90ba1cU},
    {12, 4, 1, 0, 3, 0xd22f7bf2U},        {12, 4, 1, 2, 3, 0x55d86988U},
    {48000, 4, 0, 0, 12000, 0xb38f2f9cU}, {48000, 4, 0, 2, 12000, 0xb38f2f9cU},
    {48000, 4, 1, 0, 12000, 0xe160a346U}, {48000, 4, 1, 2, 12000, 0xbc3404adU},
    {60000, 7, 0, 0, 8572, 0xb6e5438fU},  {60000, 7, 0, 2, 8572, 0xb6e5438fU},
    {60000, 7, 1, 0, 8572, 0xc324a903U},  {60000, 7, 1, 2, 8572, 0x45dbfb4cU},
};
static const struct golden_pickle {
    int tensors, len;
    uint32_t crc;
} golden_pickles[] = {
    {0, 34, 0xcd4e5d56U},        {1, 160, 0x00cffc3cU},       {2, 213, 0xf2423672U},
    {999, 73065, 0xf2138db9U},   {1000, 73139, 0xafe22e78U},  {1001, 73216, 0x00c11701U},
    {2000, 149141, 0x0997c26dU}, {2001, 149218, 0xeea66624U},
};

#endif
