#if canImport(Glibc)
    internal import Glibc
#endif

/// Ensures that standard input, output and error are open. If one were closed, the next opened file would get its number, and messages
/// could be written to the database or to a connection.
public enum StandardDescriptors {
    /// Opens closed standard descriptors in such a way that using them fails: standard input is opened for writing, output and error for
    /// reading.
    public static func fill() {
        var descriptor: CInt
        repeat {
            // A new descriptor gets the lowest free number: 0 if standard input is closed.
            let mode = fcntl(STDIN_FILENO, F_GETFD) < 0 ? O_WRONLY : O_RDONLY
            descriptor = open("/dev/null", mode)
            // In a container, /dev may be empty. The folder `/` is opened instead, because it can be neither read nor written as a file.
            if descriptor < 0 { descriptor = open("/", O_RDONLY) }
        } while (0...STDERR_FILENO).contains(descriptor)
        if descriptor >= 0 { close(descriptor) }
    }
}
