#if canImport(Glibc)
    import Glibc
#endif

/// A date in HTTP's format (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
enum HTTPDate {
    /// - Parameter seconds: the seconds since 1970.
    static func text(seconds: time_t) -> String {
        var seconds = seconds
        var civil = tm()
        gmtime_r(&seconds, &civil)
        return String(unsafeUninitializedCapacity: 64) { buffer in
            buffer.withMemoryRebound(to: CChar.self) { text in
                text.baseAddress.map { strftime($0, text.count, "%a, %d %b %Y %H:%M:%S GMT", &civil) } ?? 0
            }
        }
    }
}
