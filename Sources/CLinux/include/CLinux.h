#ifndef HEXLIST_CLINUX_H
#define HEXLIST_CLINUX_H
// System calls and libc functions that Swift cannot import, because they are macros or variadic functions or use structures with bit
// fields. Other system headers must not be included here, because their declarations would then belong to this module instead of Glibc.
#include <stddef.h>
#include <stdint.h>

// MARK: Resolver

enum {
    HEXLIST_DNS_NO_NAME = -1, HEXLIST_DNS_NO_DATA = -2, HEXLIST_DNS_NO_ANSWER = -3, HEXLIST_DNS_SERVER_FAILED = -4,
    HEXLIST_DNS_SERVER_REFUSED = -5
};

/// Sends a DNS query for records of class IN to the servers in resolv.conf, which is read at each call. Uses UDP, and TCP if the answer is
/// truncated. Blocks: each server is tried three times with a timeout of one second, so an unreachable server delays the answer of the next
/// one by one second.
/// - name: the absolute name, in presentation form. The search list of resolv.conf is not used.
/// - Returns: the length of the answer, at most `capacity`, or one of the error codes above.
int hexlist_dns_query(const char *name, int type, unsigned char *answer, int capacity);

// MARK: Command line

/// Returns the number of arguments of this process, including the program's name (argc).
int hexlist_argument_count(void);

/// Returns an argument of this process (argv); NULL if the index is out of bounds.
const char *hexlist_argument(int index);

// MARK: Connections

/// Looks up the user who owns one end of an established TCP connection in this network namespace. Sends one query with sock_diag(7) and
/// does not block.
/// - local, remote: the address and port of that end and of the other end, as IPv6. IPv4 addresses are mapped (RFC 4291 section 2.5.5.2).
/// - Returns: 1 and the user; 0 if no process has such a connection; -1 and errno if the query failed.
int hexlist_connection_user(
    const unsigned char local[16], uint16_t local_port, const unsigned char remote[16], uint16_t remote_port, uint32_t *user);

// MARK: Clock and sleep

/// Returns whether the kernel's clock is synchronised, for example by NTP: 1 if it is, 0 if it is not, -1 if unknown.
int hexlist_clock_is_synchronised(void);

/// Creates a descriptor that becomes readable when the wall clock jumps, as it does when the machine wakes from sleep. Returns -1 on
/// failure.
int hexlist_watch_wake(void);

/// Arms a descriptor of `hexlist_watch_wake`, initially and after each jump. The descriptor is a timer that never expires and is cancelled
/// when the wall clock jumps.
int hexlist_arm_wake(int fd);

/// Returns the nanoseconds for which the machine was suspended since boot: CLOCK_BOOTTIME minus CLOCK_MONOTONIC.
int64_t hexlist_slept(void);

// MARK: Interfaces

/// Creates a netlink socket that becomes readable when an interface or an address of this machine changes. Returns -1 on failure.
int hexlist_watch_addresses(void);

/// Reads and discards all pending bytes of a non-blocking descriptor.
void hexlist_drain(int fd);

// MARK: Memory of the process

/// Sets malloc's thresholds to fixed values. Must be called before large allocations. Blocks of 256 KiB and more are mapped separately and
/// unmapped when they are freed; at the end of a heap, 1 MiB of free memory is kept. By default, glibc raises these thresholds after large
/// allocations to 32 and 64 MiB, and keeps that much memory at the end of each thread's heap, which malloc_trim does not shrink.
void hexlist_bound_heap(void);

/// Returns free heap pages to the system (malloc_trim). Without this call, glibc returns only free memory at the end of the heap, and after
/// a burst about two thirds of the memory would stay allocated.
void hexlist_return_memory(void);

/// Disables core dumps of this process, and prevents other processes of the user from reading its memory (prctl(2), PR_SET_DUMPABLE). Child
/// programs are not affected.
void hexlist_forbid_core_dumps(void);

// MARK: Files

/// Opens a path relative to an open folder, with O_CLOEXEC. Fails if the path leads out of the folder or contains a symbolic link
/// (openat2(2), Linux 5.6).
/// - flags: as for open(2).
/// - Returns: a descriptor, or -1 and errno. errno is `ENOSYS` or `EPERM` if the kernel or a seccomp filter does not provide the call.
int hexlist_open_beneath(int folder, const char *path, int flags);

/// Renames an entry of an open folder without replacing an existing one (renameat2(2), RENAME_NOREPLACE). Returns 0, or -1 and errno:
/// `EEXIST` if the new name exists, `EINVAL` or `ENOSYS` if the file system or the kernel does not support the call.
int hexlist_rename_new(int folder, const char *old_name, const char *new_name);

/// Writes all changes of the file system of an open file to disk (syncfs(2)).
int hexlist_sync_file_system(int file);

/// Starts writing a part of an open file to disk without waiting (sync_file_range(2)), so that a later fsync(2) takes less time. Errors are
/// reported only by fsync(2).
void hexlist_begin_write_back(int file, int64_t offset, int64_t count);

/// Sets an extended attribute of an open file (xattr(7), namespace `user`). Returns 0, or -1 and errno: `ENOTSUP` if the file system does
/// not support extended attributes.
int hexlist_set_attribute(int file, const char *name, const char *value);

/// Reads an extended attribute of an open file. Returns the length of its value, or -1 and errno: `ENODATA` if the attribute is not set,
/// `ERANGE` if the value is longer than `size`.
int64_t hexlist_get_attribute(int file, const char *name, char *value, size_t size);

/// Removes an extended attribute of an open file. Returns 0, or -1 and errno.
int hexlist_remove_attribute(int file, const char *name);

/// Deletes a file of an open folder unless a process has it open, which is detected with a lease (fcntl(2), F_SETLEASE). On a file system
/// without leases, the file is deleted even if it is open; processes that have it open can still read it. Returns 0, or -1 and errno:
/// `EBUSY` if the file is open.
int hexlist_remove_unused(int folder, const char *name);

/// Makes the file `to` a copy-on-write clone of the file `from` (ioctl FICLONE). Returns 0, or -1 and errno if the file system does not
/// support clones or the files are on different file systems.
int hexlist_clone(int from, int to);

/// Sets the modification time of an open file without changing its access time. Returns 0, or -1 and errno.
int hexlist_set_modified(int file, int64_t seconds, int64_t nanoseconds);

/// Creates an inotify(7) descriptor that becomes readable when an entry of a folder, or the folder itself, is deleted or moved away.
/// Returns -1 and errno on failure.
int hexlist_watch_folder(const char *folder);

/// Creates an inotify(7) descriptor that becomes readable when an entry is moved into a folder, or when a file in the folder is closed
/// after writing. Returns -1 and errno on failure.
int hexlist_watch_additions(const char *folder);

/// Whether a path is on a file system of other machines or programs (NFS, SMB, FUSE, 9P), whose changes inotify(7) does not report. Returns 1
/// or 0; 0 if the path cannot be examined.
int hexlist_is_on_network(const char *path);

/// Locks an open file until its open file description is closed (fcntl(2), F_OFD_SETLK). In contrast to flock(2), other processes can query
/// this lock without acquiring it. Returns 0, or -1 and errno.
int hexlist_lock_file(int file);

/// Releases the locks of `hexlist_lock_file` and of flock(2). Closing the file does not always release them, because between fork and exec
/// a child process shares the open file description.
void hexlist_unlock_file(int file);

/// Returns whether another open file description holds the lock of `hexlist_lock_file`: 1 if so; 0 if not, or if the file system does not
/// support such locks.
int hexlist_is_file_locked(int file);

// MARK: Programs

/// Creates a descriptor that becomes readable when a process ends (pidfd_open(2), Linux 5.3). Returns -1 and errno on failure.
int hexlist_pidfd_open(int32_t pid);

/// Creates a non-blocking pipe with O_CLOEXEC on both ends. `ends[0]` is the reading end. Returns 0, or -1 and errno.
int hexlist_pipe(int ends[2]);

/// Starts a program by its path, without a shell, in a new session. All signals are unblocked and have their default actions. The program's
/// only descriptors are `input`, `output` and `errors`, as stdin, stdout and stderr. If `errors` is negative, stderr is /dev/null.
/// - folder: the working directory; NULL for that of this process.
/// - Returns: 0, or an errno value.
int hexlist_spawn(
    int32_t *pid, const char *program, char *const arguments[], char *const environment[], const char *folder, int input, int output,
    int errors);

/// Starts a program like `hexlist_spawn`, and lets the kernel kill it when the calling thread ends, and therefore also when this process
/// ends for any reason (prctl(2), PR_SET_PDEATHSIG). The calling thread must not end before the program. stderr is the same as stdout.
int hexlist_spawn_bound(
    int32_t *pid, const char *program, char *const arguments[], char *const environment[], const char *folder, int input, int output);

/// Starts a program, without a shell, in the session, working directory and environment of this process and with its standard descriptors.
/// A name without a slash is searched for in PATH. In the program, SIGPIPE has its default action, even if this process ignores it. Returns
/// 0, or an errno value.
int hexlist_spawn_here(int32_t *pid, const char *program, char *const arguments[]);

#endif
