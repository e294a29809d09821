#ifndef HEXLIST_CSQLITE_H
#define HEXLIST_CSQLITE_H
#include <sqlite3.h>

/// Disables SQLite's allocation statistics. Written in C, because Swift cannot call the variadic function `sqlite3_config`.
/// - Returns: an SQLite result code; `SQLITE_MISUSE` if SQLite is initialised already.
int hexlist_sqlite3_without_memory_statistics(void);

#endif
