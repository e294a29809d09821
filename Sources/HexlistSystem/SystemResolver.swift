internal import CLinux

/// The DNS resolver of the C library: queries the servers of resolv.conf.
public enum SystemResolver {
    public enum Failure: Error, Equatable, Sendable {
        /// The name does not exist, or has no such records.
        case nothing
        /// No server answered.
        case noAnswer
        /// SERVFAIL
        case serverFailed
        /// REFUSED
        case serverRefused
    }

    /// Sends one query. Blocks for some seconds if no server answers.
    /// - Parameters:
    ///   - name: absolute, in presentation form; no search list is applied.
    ///   - type: the record type (class IN).
    ///   - bytes: maximum bytes of the response; a longer one is truncated.
    /// - Returns: the response, which is untrusted.
    public static func ask(_ name: String, type: Int32, atMost bytes: Int) throws(Failure) -> [UInt8] {
        var answer: [UInt8] = []
        let length = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: bytes) { buffer -> Int32 in
            let length = hexlist_dns_query(name, type, buffer.baseAddress, Int32(buffer.count))
            if length > 0 { answer = Array(buffer.prefix(Int(length))) }
            return length
        }
        switch length {
        case 1...: return answer
        case Int32(HEXLIST_DNS_NO_NAME), Int32(HEXLIST_DNS_NO_DATA): throw .nothing
        case Int32(HEXLIST_DNS_SERVER_FAILED): throw .serverFailed
        case Int32(HEXLIST_DNS_SERVER_REFUSED): throw .serverRefused
        default: throw .noAnswer
        }
    }
}
