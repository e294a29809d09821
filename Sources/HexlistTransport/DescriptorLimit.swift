#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The file descriptors of this process.
public enum DescriptorLimit {
    /// Number of descriptors reserved for the store, the local API, discovery and dialled connections. Accepted connections cannot use
    /// them.
    static let reserved = 56
    /// The greatest limit that `raise` sets. It is more than this program needs. Some systems permit 10⁹ descriptors, but a child process
    /// that closes each of them would take long.
    private static let maximum: rlim_t = 65_536

    /// Raises this process's limit of open descriptors to the hard limit, but to `maximum` at most.
    public static func raise() {
        var limit = rlimit()
        guard getrlimit(kind, &limit) == 0, limit.rlim_cur < min(limit.rlim_max, maximum) else { return }
        limit.rlim_cur = min(limit.rlim_max, maximum)
        _ = setrlimit(kind, &limit)
    }

    /// The limit of open descriptors of this process.
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
    /// Returns these limits with a value of `connections` that leaves `DescriptorLimit.reserved` descriptors unused.
    /// - Parameter descriptors: the limit of open descriptors of this process.
    public func fitting(descriptors: Int) -> TransportLimits {
        var limits = self
        limits.connections = min(connections, max(8, descriptors - DescriptorLimit.reserved))
        limits.reserved = min(reserved, limits.connections / 2)
        return limits
    }
}
