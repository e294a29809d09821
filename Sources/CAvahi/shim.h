#ifndef HEXLIST_CAVAHI_SHIM_H
#define HEXLIST_CAVAHI_SHIM_H
// libavahi-client as Swift sees it: its headers, and the calls Swift cannot import.
#include <avahi-client/client.h>
#include <avahi-client/lookup.h>
#include <avahi-client/publish.h>
#include <avahi-common/address.h>
#include <avahi-common/alternative.h>
#include <avahi-common/domain.h>
#include <avahi-common/error.h>
#include <avahi-common/malloc.h>
#include <avahi-common/simple-watch.h>
#include <avahi-common/strlst.h>

#include <errno.h>
#include <pthread.h>
#include <net/if.h>
#include <string.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

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

/// A descriptor another thread makes readable with `hexlist_wake`; -1 where there is none.
static inline int hexlist_wakeup(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/// For people who look at threads; at most 15 bytes. (`pthread_setname_np` is hidden from Swift: it is a GNU extension.)
static inline void hexlist_name_thread(const char *name) {
    extern int pthread_setname_np(pthread_t, const char *);
    pthread_setname_np(pthread_self(), name);
}

static inline void hexlist_wake(int fd) {
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof(one));
    (void)written;  // full means that it is awake already
}
#endif
