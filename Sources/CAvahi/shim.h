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

#include <pthread.h>
#include <net/if.h>
#include <string.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/// Takes the wakes out of a `hexlist_wakeup` descriptor.
static inline void hexlist_empty(int fd) {
    uint64_t count;
    ssize_t taken = read(fd, &count, sizeof(count));
    (void)taken;  // none is fine
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
