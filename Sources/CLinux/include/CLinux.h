#ifndef HEXLIST_CLINUX_H
#define HEXLIST_CLINUX_H
// The parts of the system that Swift does not see, or sees only through macros, variadic functions and structures with bit fields. No
// header of the system is included here: its declarations would belong to this module instead of Glibc.
#include <stddef.h>
#include <stdint.h>

// MARK: Resolver

enum {
    HEXLIST_DNS_NO_NAME = -1, HEXLIST_DNS_NO_DATA = -2, HEXLIST_DNS_NO_ANSWER = -3, HEXLIST_DNS_SERVER_FAILED = -4,
    HEXLIST_DNS_SERVER_REFUSED = -5
};

/// Asks the servers of resolv.conf, read anew each time, for records of class IN: over UDP, and TCP where that is cut off. Blocks: each
/// server is asked three times, with a second to answer. One that is dead costs that second only, where another one answers.
/// - name: absolute, in presentation form; no search list is applied.
/// - Returns: the bytes of the answer, at most `capacity`, or one of the above.
int hexlist_dns_query(const char *name, int type, unsigned char *answer, int capacity);

// MARK: Command line

/// The number of words of this process's command line, the program's name included, as the C library passes them to main().
int hexlist_argument_count(void);

/// A word of the command line; NULL for an index outside of it.
const char *hexlist_argument(int index);

// MARK: Connections

/// Looks up the user of an established TCP connection's end in this network namespace, by one query for one socket (sock_diag(7)). The
/// kernel answers at once; nothing is listed, and nothing waits.
/// - local, remote: the addresses and ports of that end, as IPv6 addresses, those of IPv4 mapped (RFC 4291 section 2.5.5.2).
/// - Returns: 1 with the user; 0 if no process has such a connection; -1 and errno if the kernel cannot be asked.
int hexlist_connection_user(
    const unsigned char local[16], uint16_t local_port, const unsigned char remote[16], uint16_t remote_port, uint32_t *user);

// MARK: Clock and sleep

/// Whether something keeps the clock right, by the kernel's word: 1 yes, 0 no, -1 where it says nothing.
int hexlist_clock_is_synchronised(void);

/// A descriptor that becomes readable when the wall clock jumps, as it does when the machine wakes from sleep; -1 where there is none.
int hexlist_watch_wake(void);

/// Arms, or arms again, what `hexlist_watch_wake` made: a timer that never runs out and is cancelled when the wall clock jumps.
int hexlist_arm_wake(int fd);

/// Nanoseconds the machine has slept since it was started: what one clock counts and the other does not.
int64_t hexlist_slept(void);

// MARK: Interfaces

/// A netlink socket that becomes readable whenever an interface or an address of this machine changes; -1 where there is none.
int hexlist_watch_addresses(void);

/// Reads whatever waits in a non-blocking descriptor and throws it away.
void hexlist_drain(int fd);

// MARK: Memory of the process

/// Sets the heap's bounds, before anything large is in it: a block of 256 KiB is mapped by itself and given back when it is freed, and of
/// the free end of a heap 1 MiB is kept. Left alone, glibc raises both with the first large blocks, to 32 and 64 MiB; and each of its threads'
/// heaps keeps so much, since malloc_trim gives back their holes and not their ends.
void hexlist_bound_heap(void);

/// Gives the free pages of the heap back to the system. glibc does so by itself at the heap's end only, and keeps what a burst left between
/// what still lives: two thirds of it, for good.
void hexlist_return_memory(void);

/// No core dump of this process, and no look into its memory by another one of this user (prctl(2), PR_SET_DUMPABLE). A program it starts
/// is not concerned.
void hexlist_forbid_core_dumps(void);

// MARK: Files

/// Opens a path beneath an open folder, with no symbolic link on it, at its end or elsewhere (openat2(2), Linux 5.6). The descriptor, which
/// programs started from here do not inherit, or -1 and errno: `ENOSYS` or `EPERM` where the kernel, or what confines the process, has no such call.
/// - flags: as for open(2).
int hexlist_open_beneath(int folder, const char *path, int flags);

/// Renames within an open folder unless the new name is taken (renameat2(2), RENAME_NOREPLACE). 0, or -1 and errno: `EEXIST` where it is
/// taken, `EINVAL` or `ENOSYS` where the file system or the kernel cannot do this.
int hexlist_rename_new(int folder, const char *old_name, const char *new_name);

/// syncfs(2)
int hexlist_sync_file_system(int file);

/// Has the kernel begin to write a part of an open file to the disk, and waits for nothing: what fsync(2) waits for is less then. What comes of
/// it is not told; fsync(2) tells.
void hexlist_begin_write_back(int file, int64_t offset, int64_t count);

/// Sets an attribute of an open file (xattr(7), in the namespace `user`). 0, or -1 and errno: `ENOTSUP` where the file system has none.
int hexlist_set_attribute(int file, const char *name, const char *value);

/// Reads an attribute of an open file. Its length, or -1 and errno: `ENODATA` where it is not set, `ERANGE` where it is longer.
int64_t hexlist_get_attribute(int file, const char *name, char *value, size_t size);

/// Removes an attribute of an open file. 0, or -1 and errno.
int hexlist_remove_attribute(int file, const char *name);

/// Deletes an entry of an open folder unless it is a file that somebody has open (fcntl(2), F_SETLEASE). Where the file system has no leases it
/// is deleted: who has it open keeps what is in it. 0, or -1 and errno: `EBUSY` where it is open.
int hexlist_remove_unused(int folder, const char *name);

/// Makes a file have what another one has, with the same blocks on the disk until one of them changes (FICLONE). 0, or -1 and errno where the
/// file system cannot do this, or they lie on two.
int hexlist_clone(int from, int to);

/// Sets the time of the last change of an open file and leaves the time of its last use. 0, or -1 and errno.
int hexlist_set_modified(int file, int64_t seconds, int64_t nanoseconds);

/// A descriptor (inotify(7)) that becomes readable when an entry of a folder, or the folder itself, is deleted or moved away; -1 and errno.
int hexlist_watch_folder(const char *folder);

/// The same for entries that are moved into a folder, or were written and closed there.
int hexlist_watch_additions(const char *folder);

/// Locks an open file for as long as its open file description lives (fcntl(2), F_OFD_SETLK), beside a lock of flock(2): unlike that one,
/// another process can query it without taking it. 0, or -1 and errno.
int hexlist_lock_file(int file);

/// Releases the locks of `hexlist_lock_file` and of flock(2). Closing the file does not while another process has a copy of its descriptor, as
/// a child has between fork and exec.
void hexlist_unlock_file(int file);

/// Queries the lock of `hexlist_lock_file` without taking it: 1 if another open file description holds it, 0 if none does or the file system
/// has no such locks.
int hexlist_is_file_locked(int file);

// MARK: Programs

/// A descriptor that becomes readable when the process ends; -1 and errno. Linux 5.3.
int hexlist_pidfd_open(int32_t pid);

/// A pipe that does not block, reader first. Both ends are closed in whatever another thread starts meanwhile. 0, or -1 and errno.
int hexlist_pipe(int ends[2]);

/// Starts the program at a path, with no shell between, as the leader of a session of its own, with no signal blocked or ignored, and
/// with no descriptor but `input`, `output` and `errors` as the standard ones; what it writes to `errors` is dropped if that is negative.
/// 0, or an errno.
/// - folder: to start in; NULL for this process's.
int hexlist_spawn(
    int32_t *pid, const char *program, char *const arguments[], char *const environment[], const char *folder, int input, int output,
    int errors);

/// As above, and the kernel kills the program when the thread that called this ends, and so with this process however that ends
/// (prctl(2), PR_SET_PDEATHSIG). The caller's thread has to live as long as the program. `output` takes its errors too.
int hexlist_spawn_bound(
    int32_t *pid, const char *program, char *const arguments[], char *const environment[], const char *folder, int input, int output);

/// Starts a program, looked for in PATH unless its name has a slash, with no shell between, in this process's session and folder, with its
/// environment and standard descriptors. SIGPIPE ends it, also where this process ignores that. 0, or an errno.
int hexlist_spawn_here(int32_t *pid, const char *program, char *const arguments[]);

#endif
