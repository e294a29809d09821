// Empty ICU data. GRDB and Yams import Foundation, whose static library contains 34 MB of ICU data: names, calendars and collations of all
// languages. Hexlist uses no function that reads this data; such a function would report U_FILE_ACCESS_ERROR or U_MISSING_RESOURCE_ERROR.
// ICU itself provides the same empty data as stubdata.cpp (https://unicode-org.github.io/icu/userguide/icu_data/).
//
// The linker uses this definition instead of the one in the library. The name of the symbol contains the ICU version of the toolchain. With
// another ICU version, the symbol is unused and hexlistd is 34 MB larger. The symbol is hidden, so that a dynamically linked Foundation
// keeps its own data.
#include <stdint.h>

__attribute__((visibility("hidden"), aligned(16))) const struct {
    uint16_t header_size;
    uint8_t magic1, magic2;
    struct {
        uint16_t size, reserved;
        uint8_t is_big_endian, charset, bytes_per_character, reserved2;
        uint8_t format[4], format_version[4], data_version[4];
    } info;
    uint8_t padding[8];
    uint32_t entries, reserved;
} icudt76_dat = {
    .header_size = 32,
    .magic1 = 0xDA,
    .magic2 = 0x27,
    .info = {
        .size = 20,
        .is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
        .bytes_per_character = 2,
        .format = {'T', 'o', 'C', 'P'},
        .format_version = {1},
    },
};
