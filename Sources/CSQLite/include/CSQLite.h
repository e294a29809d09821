#ifndef HEXLIST_CSQLITE_H
#define HEXLIST_CSQLITE_H
#include <sqlite3.h>

/// Turns off SQLite's statistics of allocations. `sqlite3_config` takes a variable number of arguments, which Swift cannot call.
/// - Returns: an SQLite result code: `SQLITE_MISUSE` once SQLite is initialised.
int hexlist_sqlite3_without_memory_statistics(void);

#endif
