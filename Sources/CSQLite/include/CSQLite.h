#ifndef HEXLIST_CSQLITE_H
#define HEXLIST_CSQLITE_H
#include <sqlite3.h>

/// `sqlite3_config` takes a variable number of arguments, which Swift cannot call.
int hexlist_sqlite3_without_memory_statistics(void);

/// Has a connection write what a transaction adds to the log with one system call, where SQLite makes two for each page.
///
/// Nothing that another connection may read is held back, nor anything that SQLite takes for synced: what is held is written once the frame
/// that commits is in it, and before it is read, or the log synced, truncated or measured. An error of writing comes from the call that has it
/// written, and ends the transaction. The log grows by a mebibyte at once. The file itself is left alone: a checkpoint lets others read what
/// it wrote there without a sync.
/// - connection: one in WAL mode that has read something, so that its log is open.
/// - Returns: an SQLite result code.
int hexlist_sqlite3_gather_log(sqlite3 *connection);

#endif
