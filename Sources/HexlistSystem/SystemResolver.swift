internal import CLinux

/// The DNS resolver of the C library, which queries the servers in resolv.conf.
public enum SystemResolver {
    public enum Failure: Error, Equatable, Sendable {
        /// The name does not exist, or it has no records of this type.
        case nothing
        /// No server answered.
        case noAnswer
        /// A server answered with SERVFAIL.
        case serverFailed
        /// A server answered with REFUSED.
        case serverRefused
    }

    /// Sends a query and blocks until the response arrives, or for several seconds if no server answers.
    /// - Parameters:
    ///   - name: the absolute name, in presentation form. The search list of resolv.conf is not used.
    ///   - type: the record type, in the class IN.
    ///   - bytes: maximum bytes of the response. A longer response is truncated.
    /// - Returns: the response, which must not be trusted.
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
