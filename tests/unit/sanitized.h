/* sanitized.h - whether this build is under AddressSanitizer or ThreadSanitizer: then the allocator is theirs, and everything
 * takes several times as long. */
#ifndef TK_TESTS_UNIT_SANITIZED_H
#define TK_TESTS_UNIT_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
