#if canImport(Glibc)
    internal import Glibc
#endif

/// Ensures that standard input, output and error are open. If one of them were closed, the next opened file would take its place, and
/// texts for the user could go into the database or onto a connection.
public enum StandardDescriptors {
    /// Opens those that are closed so that their use fails: input for writing, output and error for reading.
    public static func fill() {
        var descriptor: CInt
        repeat {
            // A new descriptor is the lowest free one, so input is the first that can be missing.
            let mode = fcntl(STDIN_FILENO, F_GETFD) < 0 ? O_WRONLY : O_RDONLY
            descriptor = open("/dev/null", mode)
            // In a container /dev may be empty. Neither reading nor writing works on a folder.
            if descriptor < 0 { descriptor = open("/", O_RDONLY) }
        } while (0...STDERR_FILENO).contains(descriptor)
        if descriptor >= 0 { close(descriptor) }
    }
}
