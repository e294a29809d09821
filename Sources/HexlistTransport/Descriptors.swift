#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The file descriptors of this process.
public enum Descriptors {
    /// The descriptors kept for the store, the local API, discovery and dialled connections, so that a flood of connections cannot take
    /// them.
    static let kept = 56
    /// The most descriptors to ask for, more than anything here needs. Some systems allow a thousand million, and a child that closes each
    /// would take long.
    private static let most: rlim_t = 65_536

    /// Raises the process's limit to its hard limit, at most `most`.
    public static func raise() {
        var limit = rlimit()
        guard getrlimit(kind, &limit) == 0, limit.rlim_cur < min(limit.rlim_max, most) else { return }
        limit.rlim_cur = min(limit.rlim_max, most)
        _ = setrlimit(kind, &limit)
    }

    /// The present limit.
    public static var limit: Int {
        var limit = rlimit()
        guard getrlimit(kind, &limit) == 0 else { return 1_024 }
        return Int(clamping: limit.rlim_cur)
    }

    #if canImport(Glibc)
        private static let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
        private static let kind = RLIMIT_NOFILE
    #endif
}

extension TransportLimits {
    /// A copy with at most as many connections as there are descriptors, part of them still reserved.
    public func fitting(descriptors: Int) -> TransportLimits {
        var limits = self
        limits.connections = min(connections, max(8, descriptors - Descriptors.kept))
        limits.reserved = min(reserved, limits.connections / 2)
        return limits
    }
}
