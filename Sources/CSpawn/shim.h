#ifndef HEXLIST_CSPAWN_SHIM_H
#define HEXLIST_CSPAWN_SHIM_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Glibc has these for programs built with _GNU_SOURCE, which is not this header's to decide. */
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int);
extern int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *, const char *);
extern int pipe2(int[2], int);
extern long syscall(long, ...);
#ifndef POSIX_SPAWN_SETSID
#define POSIX_SPAWN_SETSID 0x80
#endif

/* A descriptor that becomes readable when the process ends; -1 and errno. Linux 5.3. */
static inline int hexlist_pidfd_open(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

/* Both ends are closed in whatever another thread starts meanwhile. */
static inline int hexlist_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC | O_NONBLOCK); }

/* Starts a program, with no shell between, as the leader of a session of its own, with no signal blocked or ignored, and
   with no descriptor but `input` as standard input and `output` as standard output and error. 0, or an errno. */
static inline int hexlist_spawn(
    pid_t *pid, const char *program, char *const arguments[], char *const environment[], const char *folder, int input, int output) {
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
    if (!error) error = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, input, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, output, 2);
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

#endif
