/* latency.h - the buckets of the latency histograms, from 0.1 s to an hour. */
#ifndef TK_OPERATOR_LATENCY_H
#define TK_OPERATOR_LATENCY_H

#include "kube/histogram.h"

static const struct histogram_bound LATENCY_BOUNDS[] = {
    {100, "0.1"},    {250, "0.25"},   {500, "0.5"},      {1000, "1"},       {2500, "2.5"},
    {5000, "5"},     {10000, "10"},   {30000, "30"},     {60000, "60"},     {120000, "120"},
    {300000, "300"}, {600000, "600"}, {1800000, "1800"}, {3600000, "3600"}, HISTOGRAM_INF};

#endif
