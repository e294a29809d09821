// CSQLite.h says what each of these does. The methods of the open log are replaced by some that hold back what is written side by side, and call
// the replaced ones for everything. SQLite calls the methods of one open file on one thread at a time.
#include "CSQLite.h"

#include <stdlib.h>
#include <string.h>

enum {
    /// The most bytes held; a larger transaction takes more calls. SQLite writes at most 131 071 bytes at once, and takes what is over for a full disk.
    GATHERED = 127 << 10,
    /// The bytes before each page of the log (fileformat2.html, "The WAL File Format"). No page is as short.
    FRAME_HEADER = 24
};

struct gathering {
    /// The methods that the file points to. They come first, so that the pointer leads to the rest.
    sqlite3_io_methods methods;
    const sqlite3_io_methods *replaced;
    /// The position behind the last write, made or held.
    sqlite3_int64 next;
    /// The number of bytes held; they belong right before `next`.
    int held;
    /// The length of the file. What lies behind it was never written.
    sqlite3_int64 length;
    /// Whether the header of a frame that commits was written last, so that its page ends a transaction.
    int commits;
    /// Whether the file was synced since the last write.
    int is_synced;
    unsigned char bytes[GATHERED];
};

static struct gathering *gathering(sqlite3_file *file) { return (struct gathering *)(void *)file->pMethods; }

/// Writes what is held. After an error it is forgotten, so the caller's own error must be one for which SQLite gives the transaction up.
static int let_go(sqlite3_file *file) {
    struct gathering *own = gathering(file);
    int count = own->held;
    if (count == 0) return SQLITE_OK;
    own->held = 0;
    int result = own->replaced->xWrite(file, own->bytes, count, own->next - count);
    if (result == SQLITE_OK && own->next > own->length) own->length = own->next;
    return result;
}

static int write_gathered(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 position) {
    struct gathering *own = gathering(file);
    int result = SQLITE_OK;
    if (position != own->next || own->held + count > GATHERED) result = let_go(file);
    if (result != SQLITE_OK) return result;
    own->is_synced = 0;
    int gathers = position == own->next && count <= GATHERED;
    own->next = position + count;
    if (!gathers) {
        result = own->replaced->xWrite(file, bytes, count, position);
        if (result == SQLITE_OK && own->next > own->length) own->length = own->next;
    } else {
        memcpy(own->bytes + own->held, bytes, (size_t)count);
        own->held += count;
    }
    int ends = own->commits;
    // The second number of a frame's header is the size of the database if the frame commits, and 0 otherwise.
    static const unsigned char none[4];
    own->commits = count == FRAME_HEADER && memcmp((const unsigned char *)bytes + 4, none, sizeof none) != 0;
    return result == SQLITE_OK && ends ? let_go(file) : result;
}

static int read_behind(sqlite3_file *file, void *bytes, int count, sqlite3_int64 position) {
    struct gathering *own = gathering(file);
    // For a full disk met in reading SQLite undoes a statement, and may commit the rest: without what was held.
    if (position < own->next && position + count > own->next - own->held && let_go(file) != SQLITE_OK) return SQLITE_IOERR_WRITE;
    return own->replaced->xRead(file, bytes, count, position);
}

static int truncate_behind(sqlite3_file *file, sqlite3_int64 size) {
    int result = let_go(file);
    if (result == SQLITE_OK) result = gathering(file)->replaced->xTruncate(file, size);
    if (result == SQLITE_OK && size < gathering(file)->length) gathering(file)->length = size;
    return result;
}

static int sync_behind(sqlite3_file *file, int flags) {
    int result = let_go(file);
    if (result == SQLITE_OK) result = gathering(file)->replaced->xSync(file, flags);
    if (result == SQLITE_OK) gathering(file)->is_synced = 1;
    return result;
}

static int size_behind(sqlite3_file *file, sqlite3_int64 *size) {
    int result = let_go(file);
    return result == SQLITE_OK ? gathering(file)->replaced->xFileSize(file, size) : result;
}

static int close_behind(sqlite3_file *file) {
    struct gathering *own = gathering(file);
    int written = let_go(file);
    file->pMethods = own->replaced;
    int closed = own->replaced->xClose(file);
    free(own);
    return closed != SQLITE_OK ? closed : written;
}

/// The open log of a connection.
static int find_log(sqlite3 *connection, sqlite3_file **log) {
    *log = NULL;
    int result = sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, log);
    if (result != SQLITE_OK) return result;
    return *log == NULL || (*log)->pMethods == NULL ? SQLITE_MISUSE : SQLITE_OK;
}

/// The open log of a connection, if it is gathered.
static int find_gathered(sqlite3 *connection, sqlite3_file **log) {
    int result = find_log(connection, log);
    return result == SQLITE_OK && (*log)->pMethods->xWrite != write_gathered ? SQLITE_MISUSE : result;
}

int hexlist_sqlite3_gather_log(sqlite3 *connection) {
    sqlite3_file *log;
    int result = find_log(connection, &log);
    if (result != SQLITE_OK) return result;
    struct gathering *own = malloc(sizeof *own);
    if (own == NULL) return SQLITE_NOMEM;
    own->methods = *log->pMethods;
    own->replaced = log->pMethods;
    result = own->replaced->xFileSize(log, &own->length);
    if (result != SQLITE_OK) {
        free(own);
        return result;
    }
    own->next = -1;
    own->held = 0;
    own->commits = 0;
    own->is_synced = 0;
    own->methods.xClose = close_behind;
    own->methods.xRead = read_behind;
    own->methods.xWrite = write_gathered;
    own->methods.xTruncate = truncate_behind;
    own->methods.xSync = sync_behind;
    own->methods.xFileSize = size_behind;
    log->pMethods = &own->methods;
    return SQLITE_OK;
}

int hexlist_sqlite3_log_size(sqlite3 *connection, sqlite3_int64 *written, sqlite3_int64 *length) {
    sqlite3_file *log;
    int result = find_gathered(connection, &log);
    if (result != SQLITE_OK) return result;
    *written = gathering(log)->next < 0 ? 0 : gathering(log)->next;
    *length = gathering(log)->length;
    return SQLITE_OK;
}

int hexlist_sqlite3_lengthen_log(sqlite3 *connection, int count) {
    static const unsigned char zeros[GATHERED];
    sqlite3_file *log;
    int result = find_gathered(connection, &log);
    if (result != SQLITE_OK) return result;
    struct gathering *own = gathering(log);
    if (!own->is_synced) return SQLITE_OK;
    while (count > 0 && result == SQLITE_OK) {
        int part = count < GATHERED ? count : GATHERED;
        result = own->replaced->xWrite(log, zeros, part, own->length);
        if (result != SQLITE_OK) break;
        own->length += part;
        count -= part;
    }
    int synced = own->replaced->xSync(log, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    return result != SQLITE_OK ? result : synced;
}

int hexlist_sqlite3_without_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
