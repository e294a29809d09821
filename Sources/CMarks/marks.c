// CMarks.h says what this does.
#include "CMarks.h"

#include <stdbool.h>
#include <string.h>

// Vectors of any width: the compiler makes them of those that the processor has.
typedef int8_t Bytes __attribute__((ext_vector_type(64)));
typedef bool Bits __attribute__((ext_vector_type(64)));

static inline __attribute__((always_inline)) uint64_t marks_of(const uint8_t *bytes) {
    Bytes block;
    memcpy(&block, bytes, sizeof block);
    // Flipping bit 1 makes the quote 0x20 and leaves the control characters under it, with space and `!` above; bytes over 0x7F are negative.
    Bits bits = __builtin_convertvector(((block ^ 2) <= 0x20) | (block == '\\'), Bits);
    uint64_t marks;
    memcpy(&marks, &bits, sizeof marks);
    return marks;
}

static inline __attribute__((always_inline)) void mark(const uint8_t *bytes, size_t count, uint64_t *marks) {
    size_t position = 0;
    for (; position + 64 <= count; position += 64) *marks++ = marks_of(bytes + position);
    size_t rest = count - position;
    uint64_t last = 0;
    if (rest > 0 && count >= 64) {
        last = marks_of(bytes + count - 64) >> (64 - rest);  // much faster than a copy of so few bytes
    } else if (rest > 0) {
        uint8_t block[64] = {0};
        memcpy(block, bytes, count);
        last = marks_of(block);
    }
    *marks++ = last | ~(uint64_t)0 << rest;
    *marks = ~(uint64_t)0;  // a load of 64 bits may begin at any bit up to that of `count`
}

#if defined(__x86_64__)
__attribute__((target("avx512bw"))) static void mark_in_512_bits(const uint8_t *bytes, size_t count, uint64_t *marks) {
    mark(bytes, count, marks);
}

__attribute__((target("avx2"))) static void mark_in_256_bits(const uint8_t *bytes, size_t count, uint64_t *marks) {
    mark(bytes, count, marks);
}
#endif

void hexlist_mark_text(const uint8_t *bytes, size_t count, uint64_t *marks) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512bw")) return mark_in_512_bits(bytes, count, marks);
    if (__builtin_cpu_supports("avx2")) return mark_in_256_bits(bytes, count, marks);
#endif
    mark(bytes, count, marks);
}
