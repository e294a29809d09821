#ifndef HEXLIST_CGLIBC_SHIM_H
#define HEXLIST_CGLIBC_SHIM_H
// What of the system Swift does not see, or sees only through macros and structures with bit fields: the resolver, the clock's state, changes of
// interfaces and addresses, sleep, and the memory of the process.
#include <arpa/nameser.h>
#include <errno.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

enum {
    HEXLIST_DNS_NO_NAME = -1, HEXLIST_DNS_NO_DATA = -2, HEXLIST_DNS_NO_ANSWER = -3, HEXLIST_DNS_SERVER_FAILED = -4,
    HEXLIST_DNS_SERVER_REFUSED = -5
};

/// Asks the servers of resolv.conf, read anew each time, for records of class IN: over UDP, and TCP where that is cut off. Blocks: each
/// server is asked three times, with a second to answer. One that is dead costs that second only, where another one answers.
/// - name: absolute, in presentation form; no search list is applied.
/// - Returns: the bytes of the answer, at most `capacity`, or one of the above.
static inline int hexlist_dns_query(const char *name, int type, unsigned char *answer, int capacity) {
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

/// Whether something keeps the clock right, by the kernel's word: 1 yes, 0 no, -1 where it says nothing.
static inline int hexlist_clock_is_synchronised(void) {
    struct timex state;
    memset(&state, 0, sizeof(state));
    if (adjtimex(&state) < 0) return -1;
    return state.status & STA_UNSYNC ? 0 : 1;
}

/// A netlink socket that becomes readable whenever an interface or an address of this machine changes; -1 where there is none.
static inline int hexlist_watch_addresses(void) {
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

/// Arms, or arms again, a timer that never runs out and is cancelled when the wall clock jumps.
static inline int hexlist_arm_wake(int fd) {
    struct itimerspec never;
    memset(&never, 0, sizeof(never));
    never.it_value.tv_sec = INT64_C(1) << 40;
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

/// A descriptor that becomes readable when the wall clock jumps, as it does when the machine wakes from sleep; -1 where there is none.
static inline int hexlist_watch_wake(void) {
    int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd >= 0 && hexlist_arm_wake(fd) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/// Nanoseconds the machine has slept since it was started: what one clock counts and the other does not.
static inline int64_t hexlist_slept(void) {
    struct timespec boot, running;
    if (clock_gettime(CLOCK_BOOTTIME, &boot) < 0 || clock_gettime(CLOCK_MONOTONIC, &running) < 0) return 0;
    return (int64_t)(boot.tv_sec - running.tv_sec) * INT64_C(1000000000) + (boot.tv_nsec - running.tv_nsec);
}

/// Sets the heap's bounds, before anything large is in it: a block of 256 KiB is mapped by itself and given back when it is freed, and of
/// the free end of a heap 1 MiB is kept. Left alone, glibc raises both with the first large blocks, to 32 and 64 MiB; and each of its threads'
/// heaps keeps so much, since malloc_trim gives back their holes and not their ends.
static inline void hexlist_bound_heap(void) {
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
}

/// No core dump of this process, and no look into its memory by another one of this user (prctl(2), PR_SET_DUMPABLE). A program it starts
/// is not concerned.
static inline void hexlist_forbid_core_dumps(void) { (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

/// Gives the free pages of the heap back to the system. glibc does so by itself at the heap's end only, and keeps what a burst left between
/// what still lives: two thirds of it, for good.
static inline void hexlist_return_memory(void) {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

/// Reads whatever waits in a non-blocking descriptor and throws it away.
static inline void hexlist_drain(int fd) {
    char bytes[8192];
    for (;;) {
        ssize_t count = read(fd, bytes, sizeof(bytes));
        // ENOBUFS: messages were lost, which says no more than that something changed.
        if (count > 0 || (count < 0 && (errno == EINTR || errno == ENOBUFS))) continue;
        return;
    }
}
#endif
