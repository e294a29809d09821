#ifndef HEXLIST_CSQLITE_SHIM_H
#define HEXLIST_CSQLITE_SHIM_H

#include <sqlite3.h>

/* sqlite3_config takes a variable number of arguments, which Swift cannot call. */
static inline int hexlist_sqlite3_without_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

#endif
