#ifndef HEXLIST_CAVAHI_SHIM_H
#define HEXLIST_CAVAHI_SHIM_H
// Headers of libavahi-client, and wrappers of calls that Swift cannot import.
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

/// Reads from a `hexlist_wakeup` descriptor, so that it is not readable any more.
static inline void hexlist_empty(int fd) {
    uint64_t count;
    ssize_t taken = read(fd, &count, sizeof(count));
    (void)taken;  // EAGAIN if it was not readable
}

/// Creates a descriptor that another thread makes readable with `hexlist_wake`; -1 on failure.
static inline int hexlist_wakeup(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/// Names the calling thread for debuggers and `top`; at most 15 bytes. (`pthread_setname_np` is a GNU extension that Swift does not
/// import.)
static inline void hexlist_name_thread(const char *name) {
    extern int pthread_setname_np(pthread_t, const char *);
    pthread_setname_np(pthread_self(), name);
}

static inline void hexlist_wake(int fd) {
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof(one));
    (void)written;  // EAGAIN means that it is readable already
}
#endif
