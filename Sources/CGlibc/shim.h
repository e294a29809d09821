#ifndef HEXLIST_CGLIBC_SHIM_H
#define HEXLIST_CGLIBC_SHIM_H
// What of the system Swift does not see: the resolver, whose functions hide behind macros and a state with bit fields, and the clock's state.
#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <string.h>
#include <sys/timex.h>

enum { HEXLIST_DNS_NO_NAME = -1, HEXLIST_DNS_NO_DATA = -2, HEXLIST_DNS_NO_ANSWER = -3 };

/// Asks the servers of resolv.conf, read anew each time, for records of class IN: over UDP, and TCP where that is cut off. Blocks: each
/// server is asked twice, with 2 s for the first answer.
/// - name: absolute, in presentation form; no search list is applied.
/// - Returns: the bytes of the answer, at most `capacity`, or one of the above.
static inline int hexlist_dns_query(const char *name, int type, unsigned char *answer, int capacity) {
    struct __res_state state;
    memset(&state, 0, sizeof(state));
    if (res_ninit(&state) != 0) return HEXLIST_DNS_NO_ANSWER;
    state.retrans = 2;
    state.retry = 2;
    int length = res_nquery(&state, name, ns_c_in, type, answer, capacity);
    int failure = state.res_h_errno;
    res_nclose(&state);
    if (length >= 0) return length < capacity ? length : capacity;
    if (failure == HOST_NOT_FOUND) return HEXLIST_DNS_NO_NAME;
    return failure == NO_DATA ? HEXLIST_DNS_NO_DATA : HEXLIST_DNS_NO_ANSWER;
}

/// Whether something keeps the clock right, by the kernel's word: 1 yes, 0 no, -1 where it says nothing.
static inline int hexlist_clock_is_synchronised(void) {
    struct timex state;
    memset(&state, 0, sizeof(state));
    if (adjtimex(&state) < 0) return -1;
    return state.status & STA_UNSYNC ? 0 : 1;
}
#endif
