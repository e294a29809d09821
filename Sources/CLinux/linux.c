// The functions are documented in CLinux.h.
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
#include <netinet/tcp.h>
#include <resolv.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <linux/fs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>

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
    // If a server sent a response, the header of the last one contains the error code.
    if (capacity >= HFIXEDSZ && (answer[2] & 0x80)) {
        if ((answer[3] & 0x0F) == ns_r_servfail) return HEXLIST_DNS_SERVER_FAILED;
        if ((answer[3] & 0x0F) == ns_r_refused) return HEXLIST_DNS_SERVER_REFUSED;
    }
    return HEXLIST_DNS_NO_ANSWER;
}

static int argument_count;
static char **argument_words;

// Runs before main(): glibc passes the arguments of main() to constructors.
__attribute__((constructor)) static void keep_arguments(int count, char **words) {
    argument_count = count;
    argument_words = words;
}

int hexlist_argument_count(void) { return argument_count; }

const char *hexlist_argument(int index) { return index >= 0 && index < argument_count ? argument_words[index] : NULL; }

// Whether an address in a reply equals `wanted`. In the reply, an IPv4 address is 4 bytes; in `wanted`, it is IPv4-mapped IPv6.
static int is_address(int family, const uint32_t found[4], const unsigned char wanted[16]) {
    static const unsigned char mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    if (family == AF_INET6) return memcmp(found, wanted, 16) == 0;
    return memcmp(wanted, mapped, 12) == 0 && memcmp(found, wanted + 12, 4) == 0;
}

int hexlist_connection_user(
    const unsigned char local[16], uint16_t local_port, const unsigned char remote[16], uint16_t remote_port, uint32_t *user) {
    struct { struct nlmsghdr head; struct inet_diag_req_v2 body; } request;
    memset(&request, 0, sizeof(request));
    struct inet_diag_sockid *id = &request.body.id;
    int is_four = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)local) && IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)remote);
    request.head.nlmsg_len = sizeof(request);
    request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    request.head.nlmsg_flags = NLM_F_REQUEST;  // without NLM_F_DUMP: this socket only
    request.body.sdiag_family = is_four ? AF_INET : AF_INET6;
    request.body.sdiag_protocol = IPPROTO_TCP;
    request.body.idiag_states = ~0U;
    id->idiag_sport = htons(local_port);
    id->idiag_dport = htons(remote_port);
    memcpy(id->idiag_src, is_four ? local + 12 : local, is_four ? 4 : 16);
    memcpy(id->idiag_dst, is_four ? remote + 12 : remote, is_four ? 4 : 16);
    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;

    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0) return -1;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK}, from;
    socklen_t length = sizeof(from);
    union { struct nlmsghdr head; unsigned char bytes[2048]; } reply;
    ssize_t count = sendto(fd, &request, sizeof(request), 0, (struct sockaddr *)&kernel, sizeof(kernel));
    // When sendto returns, the kernel has already queued the reply, so recvfrom does not need to wait.
    if (count >= 0) count = recvfrom(fd, &reply, sizeof(reply), MSG_DONTWAIT, (struct sockaddr *)&from, &length);
    int error = errno;
    close(fd);
    errno = error;
    if (count < 0) return -1;
    if (length < sizeof(from) || from.nl_pid != 0 || !NLMSG_OK(&reply.head, (unsigned)count)) {
        errno = EBADMSG;
        return -1;
    }
    if (reply.head.nlmsg_type == NLMSG_ERROR && reply.head.nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr))) {
        errno = -((const struct nlmsgerr *)NLMSG_DATA(&reply.head))->error;
        return errno == ENOENT ? 0 : -1;
    }
    if (reply.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || reply.head.nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg))) {
        errno = EBADMSG;
        return -1;
    }
    const struct inet_diag_msg *found = NLMSG_DATA(&reply.head);
    // If no connection matches, the kernel returns a listening socket. For closed connections it returns user 0 and inode 0.
    if (found->idiag_state != TCP_ESTABLISHED || found->idiag_inode == 0 || found->id.idiag_sport != id->idiag_sport
        || found->id.idiag_dport != id->idiag_dport || !is_address(found->idiag_family, found->id.idiag_src, local)
        || !is_address(found->idiag_family, found->id.idiag_dst, remote))
        return 0;
    *user = found->idiag_uid;
    return 1;
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
        // ENOBUFS means that the kernel dropped messages. The content of messages is not used, so none is missed.
        if (count > 0 || (count < 0 && (errno == EINTR || errno == ENOBUFS))) continue;
        return;
    }
}

int hexlist_open_beneath(int folder, const char *path, int flags) {
    // The structure and constants of linux/openat2.h are repeated here, because older systems do not have this header.
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
    // If another process opens the file during the lease, this process gets a signal. SIGURG is chosen because its default is to be
    // ignored, whereas the default signal SIGIO would end the process.
    int is_open = fcntl(file, F_SETSIG, SIGURG) == 0 && fcntl(file, F_SETLEASE, F_WRLCK) != 0 && errno == EAGAIN;
    int result = is_open ? -1 : unlinkat(folder, name, 0);
    int error = is_open ? EBUSY : errno;
    close(file);
    errno = error;
    return result;
}

int hexlist_clone(int from, int to) { return ioctl(to, FICLONE, from); }

static int watch(const char *folder, uint32_t events) {
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd >= 0 && inotify_add_watch(fd, folder, events | IN_ONLYDIR) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int hexlist_watch_folder(const char *folder) { return watch(folder, IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF); }

int hexlist_watch_additions(const char *folder) { return watch(folder, IN_MOVED_TO | IN_CLOSE_WRITE); }

int hexlist_is_on_network(const char *path) {
    struct statfs status;
    if (statfs(path, &status) != 0) return 0;
    switch ((uint32_t)status.f_type) {
    case 0x6969:      // NFS_SUPER_MAGIC
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x65735546:  // FUSE_SUPER_MAGIC
    case 0x01021997:  // V9FS_MAGIC
        return 1;
    default:
        return 0;
    }
}

int hexlist_lock_file(int file) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(file, F_OFD_SETLK, &whole);
}

void hexlist_unlock_file(int file) {
    struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(file, F_OFD_SETLK, &whole);
    flock(file, LOCK_UN);
}

int hexlist_is_file_locked(int file) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(file, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

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

// Runs in the child process after fork and does not return. Only calls async-signal-safe functions.
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
    // The parent may have ended before prctl took effect, so its PID is checked afterwards.
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
    // Blocks all signals, so that no signal handler of the parent runs in the child.
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
        // If execve succeeds, it closes the pipe, so reading gives the end of file instead of an error code.
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
