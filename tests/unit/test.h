/* test.h - what every cmocka program includes, in the order cmocka needs. */
#ifndef TK_TESTS_UNIT_TEST_H
#define TK_TESTS_UNIT_TEST_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#endif
