#include "CSQLite.h"

int hexlist_sqlite3_without_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
