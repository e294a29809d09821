#if canImport(Glibc)
    import Glibc
#endif

/// Standard input, output and error are there, whoever started the daemon: with one of them closed, the next file opened
/// would be it, and the log would go into the database.
enum StandardDescriptors {
    static func fill() {
        var descriptor: CInt
        repeat { descriptor = open("/dev/null", O_RDWR) } while (0...STDERR_FILENO).contains(descriptor)
        if descriptor >= 0 { close(descriptor) }
    }
}
