#ifndef HEXLIST_CMARKS_H
#define HEXLIST_CMARKS_H
#include <stddef.h>
#include <stdint.h>

/// Marks the bytes at which a run of plain JSON text ends: quotes, backslashes, control characters and everything beyond ASCII. In C, because
/// Swift has neither a vector's mask as a number nor a choice of the vector's width when the program runs.
/// - bytes: `count` bytes.
/// - marks: room for `count / 64 + 2` numbers. Afterwards bit `n % 64` of number `n / 64` is 1 if byte `n` is one of those, and all bits from
///   `count` on are 1.
void hexlist_mark_text(const uint8_t *bytes, size_t count, uint64_t *marks);

#endif
