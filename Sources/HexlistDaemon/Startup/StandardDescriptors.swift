#if canImport(Glibc)
    import Glibc
#endif

/// Ensures that standard input, output and error are open: if one of them were closed, the next opened file would take its place, and the
/// log could go into the database.
enum StandardDescriptors {
    static func fill() {
        var descriptor: CInt
        repeat { descriptor = open("/dev/null", O_RDWR) } while (0...STDERR_FILENO).contains(descriptor)
        if descriptor >= 0 { close(descriptor) }
    }
}
