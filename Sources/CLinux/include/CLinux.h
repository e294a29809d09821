#ifndef HEXLIST_CLINUX_H
#define HEXLIST_CLINUX_H
// System calls and libc functions that Swift cannot import: macros, variadic functions, structures with bit fields. No system header is
// included here, because its declarations would then belong to this module instead of Glibc.
#include <stddef.h>
#include <stdint.h>

// MARK: Resolver

enum {
    HEXLIST_DNS_NO_NAME = -1, HEXLIST_DNS_NO_DATA = -2, HEXLIST_DNS_NO_ANSWER = -3, HEXLIST_DNS_SERVER_FAILED = -4,
    HEXLIST_DNS_SERVER_REFUSED = -5
};

/// Queries the servers of resolv.conf, which is read each time, for records of class IN; over UDP, and over TCP if the answer is truncated.
/// Blocks: three attempts per server with a timeout of one second each, so an unreachable server costs one second if another one answers.
/// - name: absolute, in presentation form; no search list is applied.
/// - Returns: the length of the answer, at most `capacity`, or one of the error codes above.
int hexlist_dns_query(const char *name, int type, unsigned char *answer, int capacity);

// MARK: Command line

/// The argument count of this process, including the program's name (argc).
int hexlist_argument_count(void);

/// An argument of this process (argv); NULL if the index is out of bounds.
const char *hexlist_argument(int index);

// MARK: Connections

/// Looks up the user who owns an established TCP connection's end in this network namespace, by a sock_diag(7) query for one socket. Does
/// not block.
/// - local, remote: addresses and ports of that end, as IPv6; IPv4 addresses are mapped (RFC 4291 section 2.5.5.2).
/// - Returns: 1 with the user; 0 if no process has such a connection; -1 and errno if the query failed.
int hexlist_connection_user(
    const unsigned char local[16], uint16_t local_port, const unsigned char remote[16], uint16_t remote_port, uint32_t *user);

// MARK: Clock and sleep

/// Whether the kernel's clock is synchronised, by NTP for example: 1 yes, 0 no, -1 unknown.
int hexlist_clock_is_synchronised(void);

/// Creates a descriptor that becomes readable when the wall clock jumps, as it does when the machine wakes from sleep; -1 on failure.
int hexlist_watch_wake(void);

/// Arms or rearms a descriptor of `hexlist_watch_wake`: a timer that never expires and is cancelled when the wall clock jumps.
int hexlist_arm_wake(int fd);

/// Nanoseconds the machine has been suspended since boot: CLOCK_BOOTTIME less CLOCK_MONOTONIC.
int64_t hexlist_slept(void);

// MARK: Interfaces

/// Creates a netlink socket that becomes readable when an interface or address of this machine changes; -1 on failure.
int hexlist_watch_addresses(void);

/// Reads and discards all pending bytes of a non-blocking descriptor.
void hexlist_drain(int fd);

// MARK: Memory of the process

/// Fixes malloc's thresholds; call it before large allocations. Blocks of 256 KiB and more are mapped separately and unmapped when freed,
/// and 1 MiB of free memory at the end of a heap is kept. By default glibc raises both thresholds after large allocations, to 32 and 64
/// MiB, and keeps that much for the heap of each thread, since malloc_trim does not shrink their ends.
void hexlist_bound_heap(void);

/// Returns free heap pages to the system (malloc_trim). On its own, glibc frees only the end of the heap, so after a burst about two thirds
/// of the memory would stay allocated.
void hexlist_return_memory(void);

/// Disables core dumps of this process, and access to its memory by other processes of the user (prctl(2), PR_SET_DUMPABLE). Child programs
/// are not affected.
void hexlist_forbid_core_dumps(void);

// MARK: Files

/// Opens a path beneath an open folder without following symbolic links anywhere in it (openat2(2), Linux 5.6), with O_CLOEXEC.
/// - flags: as for open(2).
/// - Returns: a descriptor, or -1 and errno: `ENOSYS` or `EPERM` if the kernel or a seccomp filter does not provide the call.
int hexlist_open_beneath(int folder, const char *path, int flags);

/// Renames an entry of an open folder without replacing another one (renameat2(2), RENAME_NOREPLACE). 0, or -1 and errno: `EEXIST` if the
/// new name exists, `EINVAL` or `ENOSYS` if the file system or kernel does not support it.
int hexlist_rename_new(int folder, const char *old_name, const char *new_name);

/// syncfs(2)
int hexlist_sync_file_system(int file);

/// Starts writeback of a part of an open file without waiting (sync_file_range(2)), so that a later fsync(2) has less to write. Errors are
/// reported by fsync(2) only.
void hexlist_begin_write_back(int file, int64_t offset, int64_t count);

/// Sets an extended attribute of an open file (xattr(7), namespace `user`). 0, or -1 and errno: `ENOTSUP` if the file system does not
/// support them.
int hexlist_set_attribute(int file, const char *name, const char *value);

/// Reads an extended attribute of an open file. Its length, or -1 and errno: `ENODATA` if it is not set, `ERANGE` if it is longer than
/// `size`.
int64_t hexlist_get_attribute(int file, const char *name, char *value, size_t size);

/// Removes an extended attribute of an open file. 0, or -1 and errno.
int hexlist_remove_attribute(int file, const char *name);

/// Deletes a file of an open folder unless it is open in any process, which is detected with a lease (fcntl(2), F_SETLEASE). On file
/// systems without leases it is deleted anyway; processes that have it open can still read it. 0, or -1 and errno: `EBUSY` if it is open.
int hexlist_remove_unused(int folder, const char *name);

/// Makes a file a copy-on-write clone of another one (ioctl FICLONE). 0, or -1 and errno if the file system does not support it or the
/// files are on different ones.
int hexlist_clone(int from, int to);

/// Sets the modification time of an open file and keeps its access time. 0, or -1 and errno.
int hexlist_set_modified(int file, int64_t seconds, int64_t nanoseconds);

/// Creates an inotify(7) descriptor that becomes readable when an entry of a folder, or the folder itself, is deleted or moved away; -1 and
/// errno on failure.
int hexlist_watch_folder(const char *folder);

/// The same for entries that are moved into a folder, or were written and closed there.
int hexlist_watch_additions(const char *folder);

/// Locks an open file until its open file description is closed (fcntl(2), F_OFD_SETLK). Unlike flock(2), the lock can be queried by
/// another process without acquiring it. 0, or -1 and errno.
int hexlist_lock_file(int file);

/// Releases the locks of `hexlist_lock_file` and of flock(2). Closing the file is not enough while a child process still shares the
/// description, between fork and exec.
void hexlist_unlock_file(int file);

/// Whether another open file description holds the lock of `hexlist_lock_file`: 1 yes; 0 no, or the file system does not support such
/// locks.
int hexlist_is_file_locked(int file);

// MARK: Programs

/// Creates a descriptor that becomes readable when a process ends (pidfd_open(2), Linux 5.3); -1 and errno.
int hexlist_pidfd_open(int32_t pid);

/// Creates a non-blocking pipe, reader first, with O_CLOEXEC on both ends. 0, or -1 and errno.
int hexlist_pipe(int ends[2]);

/// Starts a program by its path, without a shell, in a new session, with all signals unblocked and set to their defaults. Its only
/// descriptors are `input`, `output` and `errors` as stdin, stdout and stderr; a negative `errors` means /dev/null.
/// - folder: working directory; NULL for that of this process.
/// - Returns: 0, or an errno.
int hexlist_spawn(
    int32_t *pid, const char *program, char *const arguments[], char *const environment[], const char *folder, int input, int output,
    int errors);

/// Like `hexlist_spawn`, but the kernel kills the program when the calling thread ends, and so when this process ends for any reason
/// (prctl(2), PR_SET_PDEATHSIG). The calling thread must outlive the program. stderr goes to `output` too.
int hexlist_spawn_bound(
    int32_t *pid, const char *program, char *const arguments[], char *const environment[], const char *folder, int input, int output);

/// Starts a program, without a shell, in this process's session, folder and environment and with its standard descriptors. The program is
/// searched in PATH unless its name contains a slash. SIGPIPE has its default action, even if this process ignores it. 0, or an errno.
int hexlist_spawn_here(int32_t *pid, const char *program, char *const arguments[]);

#endif
