/* Loaded into hexlistd with LD_PRELOAD by the programs in this folder: makes chosen system calls fail, or kills the process at
 * one of them, and disables a defence of the store. hexlistd does not know of it.
 *
 * FAULT_RULES contains rules, separated by ';':
 *
 *     CALL:FILE:FIRST-LAST:ACTION[:WHILE]
 *
 *     CALL    pwrite, pread, fdatasync, fsync, rename, write (write, writev, send, sendto, sendmsg), or any of them;
 *             lock (POSIX locks by fcntl), which any does not include
 *     FILE    a part of the file's path in /proc/self/fd ("-wal", "socket"), its end if a '$' follows; empty for all
 *     FIRST   the first call affected, counted from 1 for this rule; LAST the last one, empty for no end
 *     ACTION  kill      SIGKILL before the call
 *             killed    SIGKILL after it
 *             tear      half of it is written, then SIGKILL
 *             hold      the call waits while WHILE exists; WHILE.held shows that a call is waiting
 *             EIO, ENOSPC, EROFS, ENOLCK   the call fails with this error and does nothing
 *     WHILE   a path: the rule counts and acts only while that file exists
 *
 * FAULT_CLOCK is a file with the number of seconds by which the wall clock is ahead, as soon as the file exists. The other clocks are
 * unchanged, as after a night in which the machine stayed on.
 *
 * FAULT_NORMAL=1 turns the store's `PRAGMA synchronous = FULL` into NORMAL, and reports FULL when the store queries it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum action { NOTHING, KILL, KILLED, TEAR, HOLD, FAIL };

struct rule {
    char call[16], file[256], guard[512];
    long first, last;
    enum action action;
    int error;
    atomic_long count;
};

static struct rule rules[32];
static int rule_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void bad(const char *text) {
    dprintf(2, "shim: %s\n", text);
    _exit(99);
}

/* The next part of a rule, up to ':' or its end. */
static char *part(char **rest) { return strsep(rest, ":"); }

static void parse(void) {
    char *text = getenv("FAULT_RULES");
    if (!text) return;
    text = strdup(text);
    for (char *line; (line = strsep(&text, ";"));) {
        if (!*line) continue;
        if (rule_count == 32) bad("too many rules");
        struct rule *rule = &rules[rule_count++];
        char *call = part(&line), *file = part(&line), *range = part(&line), *action = part(&line), *guard = part(&line);
        if (!action) bad("a rule has four parts or five");
        snprintf(rule->call, sizeof rule->call, "%s", call);
        snprintf(rule->file, sizeof rule->file, "%s", file);
        snprintf(rule->guard, sizeof rule->guard, "%s", guard ? guard : "");
        char *dash = strchr(range, '-');
        rule->first = atol(range);
        rule->last = !dash ? rule->first : dash[1] ? atol(dash + 1) : __LONG_MAX__;
        static const struct { const char *name; enum action action; int error; } actions[] = {
            {"kill", KILL, 0}, {"killed", KILLED, 0}, {"tear", TEAR, 0}, {"hold", HOLD, 0},
            {"EIO", FAIL, EIO}, {"ENOSPC", FAIL, ENOSPC}, {"EROFS", FAIL, EROFS},
            {"ENOLCK", FAIL, ENOLCK},
        };
        for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
            if (!strcmp(action, actions[i].name)) rule->action = actions[i].action, rule->error = actions[i].error;
        if (rule->action == NOTHING) bad("no such action");
    }
}

static int names(int descriptor, const char *path, const char *wanted) {
    if (!*wanted) return 1;
    char link[64], target[512];
    if (!path) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(link, target, sizeof target - 1);
        if (length < 0) return 0;
        target[length] = 0;
        path = target;
    }
    size_t length = strlen(wanted), whole = strlen(path);
    if (wanted[length - 1] != '$') return strstr(path, wanted) != NULL;
    return whole >= --length && !strncmp(path + whole - length, wanted, length);
}

/* Kills the process at a call of this rule, after printing the call on standard error. */
static void die(const struct rule *rule) {
    dprintf(2, "shim: killed at %s of %s\n", rule->call, rule->file);
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* The action for this call; `acting` is set to its rule. Performs `hold` and `kill` itself. */
static enum action ask(const char *call, int descriptor, const char *path, const struct rule **acting) {
    pthread_once(&once, parse);
    int saved = errno;
    enum action found = NOTHING;
    for (int i = 0; i < rule_count && found == NOTHING; i++) {
        struct rule *rule = &rules[i];
        if (strcmp(rule->call, call) && (strcmp(rule->call, "any") || !strcmp(call, "lock"))) continue;
        if (!names(descriptor, path, rule->file)) continue;
        if (*rule->guard && access(rule->guard, F_OK) != 0) continue;
        long number = atomic_fetch_add(&rule->count, 1) + 1;
        if (number < rule->first || number > rule->last) continue;
        if (rule->action == KILL) die(rule);
        if (rule->action == HOLD) {
            char held[520];
            snprintf(held, sizeof held, "%s.held", rule->guard);
            close(open(held, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
            while (access(rule->guard, F_OK) == 0) usleep(1000);
            continue;
        }
        found = rule->action;
        *acting = rule;
    }
    errno = saved;
    return found;
}

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })

/* Wraps one call: `half` is the replacement of a torn call. */
#define WRAP(call, descriptor, path, half, whole)                    \
    const struct rule *acting = NULL;                                \
    enum action action = ask(call, descriptor, path, &acting);       \
    if (action == FAIL) { errno = acting->error; return -1; }        \
    if (action == TEAR) { half; die(acting); }                       \
    __typeof__(whole) result = whole;                                \
    if (action == KILLED) die(acting);                               \
    return result

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    WRAP("pwrite", fd, NULL, REAL(pwrite)(fd, data, size / 2, at), REAL(pwrite)(fd, data, size, at));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    WRAP("pwrite", fd, NULL, REAL(pwrite64)(fd, data, size / 2, at), REAL(pwrite64)(fd, data, size, at));
}
ssize_t pread(int fd, void *data, size_t size, off_t at) { WRAP("pread", fd, NULL, (void)0, REAL(pread)(fd, data, size, at)); }
ssize_t pread64(int fd, void *data, size_t size, off64_t at) { WRAP("pread", fd, NULL, (void)0, REAL(pread64)(fd, data, size, at)); }
int fdatasync(int fd) { WRAP("fdatasync", fd, NULL, (void)0, REAL(fdatasync)(fd)); }
int fsync(int fd) { WRAP("fsync", fd, NULL, (void)0, REAL(fsync)(fd)); }
int rename(const char *from, const char *to) { WRAP("rename", -1, to, (void)0, REAL(rename)(from, to)); }
ssize_t write(int fd, const void *data, size_t size) {
    WRAP("write", fd, NULL, REAL(write)(fd, data, size / 2), REAL(write)(fd, data, size));
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    WRAP("write", fd, NULL, REAL(writev)(fd, parts, (count + 1) / 2), REAL(writev)(fd, parts, count));
}
ssize_t send(int fd, const void *data, size_t size, int flags) {
    WRAP("write", fd, NULL, REAL(send)(fd, data, size / 2, flags), REAL(send)(fd, data, size, flags));
}
ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    WRAP("write", fd, NULL, REAL(sendto)(fd, data, size / 2, flags, to, length), REAL(sendto)(fd, data, size, flags, to, length));
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    WRAP("write", fd, NULL, (void)0, REAL(sendmsg)(fd, message, flags));
}

/* Some programs call fcntl, others fcntl64. The argument is a pointer for locks, and is passed on as one in all cases. */
static int is_lock(int command) { return command == F_SETLK || command == F_SETLKW || command == F_GETLK; }
int fcntl(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (!is_lock(command)) return REAL(fcntl)(fd, command, argument);
    WRAP("lock", fd, NULL, (void)0, REAL(fcntl)(fd, command, argument));
}
int fcntl64(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (!is_lock(command)) return REAL(fcntl64)(fd, command, argument);
    WRAP("lock", fd, NULL, (void)0, REAL(fcntl64)(fd, command, argument));
}

/* The wall clock. */

static long ahead(void) {
    const char *path = getenv("FAULT_CLOCK");
    if (!path) return 0;
    int saved = errno;
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t length = read(fd, text, sizeof text - 1);
        text[length < 0 ? 0 : length] = 0;
        close(fd);
    }
    errno = saved;
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = REAL(clock_gettime)(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead();
    return result;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int result = REAL(gettimeofday)(now, zone);
    if (result == 0) now->tv_sec += ahead();
    return result;
}
time_t time(time_t *now) {
    time_t result = REAL(time)(NULL) + ahead();
    if (now) *now = result;
    return result;
}

/* SQLite's `synchronous` setting. */

static const char *without_defence(const char *sql) {
    static int normal = -1;
    if (normal < 0) normal = getenv("FAULT_NORMAL") != NULL;
    if (!normal || !sql) return sql;
    if (!strcmp(sql, "PRAGMA synchronous = FULL")) return "PRAGMA synchronous = NORMAL";
    if (!strcmp(sql, "PRAGMA synchronous")) return "SELECT 2";
    return sql;
}

typedef int prepare_v3(void *, const char *, int, unsigned, void **, const char **);

int sqlite3_prepare_v3(void *db, const char *sql, int size, unsigned flags, void **statement, const char **tail) {
    static prepare_v3 *real;
    if (!real) real = (prepare_v3 *)dlsym(RTLD_NEXT, "sqlite3_prepare_v3");
    const char *other = without_defence(sql);
    if (other == sql) return real(db, sql, size, flags, statement, tail);
    if (tail) *tail = sql + strlen(sql);
    return real(db, other, -1, flags, statement, NULL);
}

int sqlite3_prepare_v2(void *db, const char *sql, int size, void **statement, const char **tail) {
    return sqlite3_prepare_v3(db, sql, size, 0, statement, tail);
}
