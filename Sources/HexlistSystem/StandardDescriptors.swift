#if canImport(Glibc)
    internal import Glibc
#endif

/// Ensures that standard input, output and error are open. Otherwise the next opened file would take a closed one's number, and messages
/// could be written into the database or to a connection.
public enum StandardDescriptors {
    /// Opens closed ones in a way that using them fails: input for writing, output and error for reading.
    public static func fill() {
        var descriptor: CInt
        repeat {
            // A new descriptor has the lowest free number, so only the first can be standard input.
            let mode = fcntl(STDIN_FILENO, F_GETFD) < 0 ? O_WRONLY : O_RDONLY
            descriptor = open("/dev/null", mode)
            // /dev may be empty in a container. A folder can be neither read nor written.
            if descriptor < 0 { descriptor = open("/", O_RDONLY) }
        } while (0...STDERR_FILENO).contains(descriptor)
        if descriptor >= 0 { close(descriptor) }
    }
}
