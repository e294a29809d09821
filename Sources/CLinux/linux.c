// CLinux.h says what each of these does.
#define _GNU_SOURCE
#include "CLinux.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <fcntl.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

int hexlist_dns_query(const char *name, int type, unsigned char *answer, int capacity) {
    struct __res_state state;
    memset(&state, 0, sizeof(state));
    if (res_ninit(&state) != 0) return HEXLIST_DNS_NO_ANSWER;
    state.retrans = 1;
    state.retry = 3;
    memset(answer, 0, capacity < HFIXEDSZ ? capacity : HFIXEDSZ);
    int length = res_nquery(&state, name, ns_c_in, type, answer, capacity);
    int failure = state.res_h_errno;
    res_nclose(&state);
    if (length >= 0) return length < capacity ? length : capacity;
    if (failure == HOST_NOT_FOUND) return HEXLIST_DNS_NO_NAME;
    if (failure == NO_DATA) return HEXLIST_DNS_NO_DATA;
    // What the last server said, if it said anything: the header of a response, with its code.
    if (capacity >= HFIXEDSZ && (answer[2] & 0x80)) {
        if ((answer[3] & 0x0F) == ns_r_servfail) return HEXLIST_DNS_SERVER_FAILED;
        if ((answer[3] & 0x0F) == ns_r_refused) return HEXLIST_DNS_SERVER_REFUSED;
    }
    return HEXLIST_DNS_NO_ANSWER;
}

int hexlist_clock_is_synchronised(void) {
    struct timex state;
    memset(&state, 0, sizeof(state));
    if (adjtimex(&state) < 0) return -1;
    return state.status & STA_UNSYNC ? 0 : 1;
}

int hexlist_watch_addresses(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0) return -1;
    struct sockaddr_nl local;
    memset(&local, 0, sizeof(local));
    local.nl_family = AF_NETLINK;
    local.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
    if (bind(fd, (struct sockaddr *)&local, sizeof(local)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int hexlist_arm_wake(int fd) {
    struct itimerspec never;
    memset(&never, 0, sizeof(never));
    never.it_value.tv_sec = INT64_C(1) << 40;
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

int hexlist_watch_wake(void) {
    int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd >= 0 && hexlist_arm_wake(fd) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int64_t hexlist_slept(void) {
    struct timespec boot, running;
    if (clock_gettime(CLOCK_BOOTTIME, &boot) < 0 || clock_gettime(CLOCK_MONOTONIC, &running) < 0) return 0;
    return (int64_t)(boot.tv_sec - running.tv_sec) * INT64_C(1000000000) + (boot.tv_nsec - running.tv_nsec);
}

void hexlist_bound_heap(void) {
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
}

void hexlist_forbid_core_dumps(void) { (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

void hexlist_return_memory(void) {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

void hexlist_drain(int fd) {
    char bytes[8192];
    for (;;) {
        ssize_t count = read(fd, bytes, sizeof(bytes));
        // ENOBUFS: messages were lost, which says no more than that something changed.
        if (count > 0 || (count < 0 && (errno == EINTR || errno == ENOBUFS))) continue;
        return;
    }
}

int hexlist_open_beneath(int folder, const char *path, int flags) {
    // The structure and the numbers of linux/openat2.h, which older headers lack.
    struct { uint64_t flags, mode, resolve; } how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .resolve = 0x08 | 0x04 | 0x02,  // RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS
    };
    return (int)syscall(437, folder, path, &how, sizeof(how));
}

int hexlist_rename_new(int folder, const char *old_name, const char *new_name) {
    return renameat2(folder, old_name, folder, new_name, RENAME_NOREPLACE);
}

int hexlist_sync_file_system(int file) { return syncfs(file); }

void hexlist_begin_write_back(int file, int64_t offset, int64_t count) { sync_file_range(file, offset, count, SYNC_FILE_RANGE_WRITE); }

int hexlist_set_attribute(int file, const char *name, const char *value) { return fsetxattr(file, name, value, strlen(value), 0); }

int64_t hexlist_get_attribute(int file, const char *name, char *value, size_t size) { return fgetxattr(file, name, value, size); }

int hexlist_remove_attribute(int file, const char *name) { return fremovexattr(file, name); }

int hexlist_remove_unused(int folder, const char *name) {
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) return -1;
    // Whoever opens it while it is leased makes a signal for this process: one that does nothing by itself, instead of SIGIO, which ends it.
    int is_open = fcntl(file, F_SETSIG, SIGURG) == 0 && fcntl(file, F_SETLEASE, F_WRLCK) != 0 && errno == EAGAIN;
    int result = is_open ? -1 : unlinkat(folder, name, 0);
    int error = is_open ? EBUSY : errno;
    close(file);
    errno = error;
    return result;
}

int hexlist_clone(int from, int to) { return ioctl(to, FICLONE, from); }

int hexlist_set_modified(int file, int64_t seconds, int64_t nanoseconds) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = seconds, .tv_nsec = nanoseconds}};
    return futimens(file, times);
}

int hexlist_pidfd_open(int32_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

int hexlist_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC | O_NONBLOCK); }

int hexlist_spawn(
    int32_t *pid, const char *program, char *const arguments[], char *const environment[], const char *folder, int input, int output,
    int errors) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    sigemptyset(&none);
    sigfillset(&all);
    if (folder) error = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, input, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (!error)
        error = errors < 0 ? posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
                           : posix_spawn_file_actions_adddup2(&actions, errors, 2);
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(&attributes, &all);
    if (!error)
        error = posix_spawnattr_setflags(
            &attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!error) error = posix_spawn(pid, program, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

// The child's half: only what a signal handler may call. Does not return.
static void run_bound(
    pid_t parent, const char *program, char *const arguments[], char *const environment[], const char *folder, int input, int output,
    int report) {
    struct sigaction plain;
    sigset_t none;
    memset(&plain, 0, sizeof(plain));
    plain.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; number++) (void)sigaction(number, &plain, NULL);
    sigemptyset(&none);
    errno = ESRCH;
    // A parent that ended before the call of prctl is the parent no more.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && setsid() >= 0 && (!folder || chdir(folder) == 0)
        && dup2(input, 0) >= 0 && dup2(output, 1) >= 0 && dup2(output, 2) >= 0
        && (report == 3 || dup3(report, 3, O_CLOEXEC) >= 0)) {
        report = 3;
        close_range(4, ~0U, 0);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(program, arguments, environment);
    }
    int error = errno;
    (void)!write(report, &error, sizeof(error));
    _exit(127);
}

int hexlist_spawn_bound(
    int32_t *pid, const char *program, char *const arguments[], char *const environment[], const char *folder, int input, int output) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0) return errno;
    sigset_t all, before;
    sigfillset(&all);
    pid_t parent = getpid();
    // No handler of this process runs in the child.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0) run_bound(parent, program, arguments, environment, folder, input, output, report[1]);
    int error = child < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (child >= 0) {
        ssize_t count;
        do count = read(report[0], &error, sizeof(error));
        while (count < 0 && errno == EINTR);
        // Nothing: execve closed the pipe.
        if (count != (ssize_t)sizeof(error)) error = 0;
        if (error) (void)waitpid(child, NULL, 0);
    }
    close(report[0]);
    *pid = child;
    return error;
}

int hexlist_spawn_here(int32_t *pid, const char *program, char *const arguments[]) {
    posix_spawnattr_t attributes;
    sigset_t pipe;
    int error = posix_spawnattr_init(&attributes);
    if (error) return error;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    error = posix_spawnattr_setsigdefault(&attributes, &pipe);
    if (!error) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    if (!error) error = posix_spawnp(pid, program, NULL, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    return error;
}
