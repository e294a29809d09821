#ifndef HEXLIST_CSQLITE_H
#define HEXLIST_CSQLITE_H
#include <sqlite3.h>

/// `sqlite3_config` takes a variable number of arguments, which Swift cannot call.
int hexlist_sqlite3_without_memory_statistics(void);

/// Has a connection write what a transaction adds to the log with one system call, where SQLite makes two for each page.
///
/// Nothing that another connection may read is held back, nor anything that SQLite takes for synced: what is held is written once the frame
/// that commits is in it, and before it is read, or the log synced, truncated or measured. An error of writing comes from the call that has it
/// written, and ends the transaction. The file itself is left alone: a checkpoint lets others read what it wrote there without a sync.
/// - connection: one in WAL mode that has read something, so that its log is open.
/// - Returns: an SQLite result code.
int hexlist_sqlite3_gather_log(sqlite3 *connection);

/// The end of what was written into such a log last, and the length of its file, in bytes, without asking the file system.
/// - Returns: an SQLite result code.
int hexlist_sqlite3_log_size(sqlite3 *connection, sqlite3_int64 *written, sqlite3_int64 *length);

/// Makes the file of such a log longer by zeros, and syncs it. SQLite stops reading a log at the first frame that is not of its present round, and
/// zeros are none. Does nothing where what was written last was not synced: such a log is in nobody's way. Not within a transaction.
/// - count: bytes.
/// - Returns: an SQLite result code. After an error the log is as good as before.
int hexlist_sqlite3_lengthen_log(sqlite3 *connection, int count);

#endif
