internal import CLinux

#if canImport(Glibc)
    internal import Glibc
#endif

extension Program {
    /// Starts the program in a new session, without this process's descriptors, and does not wait for its end. It continues after this
    /// process has ended. While both run, a thread of this process waits for its end, to remove it from the process table.
    /// - Parameter environment: the complete environment, as `NAME=value`.
    /// - Throws: the error if it cannot be started.
    public func launch(environment: [String]) throws(SystemError) {
        var words = Self.pointers([path] + arguments)
        var variables = Self.pointers(environment)
        defer { for text in words + variables { free(text) } }
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard null >= 0 else { throw .last }
        defer { close(null) }
        var pid: pid_t = 0
        let error = hexlist_spawn(&pid, path, &words, &variables, nil, null, null, null)
        guard error == 0 else { throw SystemError(code: error) }
        Self.threads.async { [pid] in while waitpid(pid, nil, 0) < 0, errno == EINTR {} }
    }
}
