#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The file descriptors of this process.
public enum Descriptors {
    /// Descriptors reserved for the store, the local API, discovery and dialled connections, so that accepted connections cannot exhaust
    /// them.
    static let reserved = 56
    /// Maximum limit that `raise` sets, more than this program needs. Some systems permit 10⁹ descriptors, and a child program that closes
    /// each of them would take long.
    private static let maximum: rlim_t = 65_536

    /// Raises the process's limit to its hard limit, at most `maximum`.
    public static func raise() {
        var limit = rlimit()
        guard getrlimit(kind, &limit) == 0, limit.rlim_cur < min(limit.rlim_max, maximum) else { return }
        limit.rlim_cur = min(limit.rlim_max, maximum)
        _ = setrlimit(kind, &limit)
    }

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
    /// A copy in which `connections` fits into the process's descriptor limit, less `Descriptors.reserved`.
    public func fitting(descriptors: Int) -> TransportLimits {
        var limits = self
        limits.connections = min(connections, max(8, descriptors - Descriptors.reserved))
        limits.reserved = min(reserved, limits.connections / 2)
        return limits
    }
}
