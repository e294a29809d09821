#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The file descriptors this process may have.
public enum Descriptors {
    /// Kept back for the store, the local API, discovery and what is dialled: a flood of connections must not take those.
    static let kept = 56
    /// More than anything here needs; some systems allow a thousand million, and a child that closes each would take long.
    private static let most: rlim_t = 65_536

    /// As many as the system lets this process have without asking anybody.
    public static func raise() {
        var limit = rlimit()
        guard getrlimit(kind, &limit) == 0, limit.rlim_cur < min(limit.rlim_max, most) else { return }
        limit.rlim_cur = min(limit.rlim_max, most)
        _ = setrlimit(kind, &limit)
    }

    /// At present.
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
    /// No more connections than there are descriptors for, and some of them reserved still.
    public func fitting(descriptors: Int) -> TransportLimits {
        var limits = self
        limits.connections = min(connections, max(8, descriptors - Descriptors.kept))
        limits.reserved = min(reserved, limits.connections / 2)
        return limits
    }
}
