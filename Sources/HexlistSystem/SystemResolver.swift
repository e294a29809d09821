internal import CLinux

/// The resolver of the C library: one question of unicast DNS to the servers of resolv.conf.
public enum SystemResolver {
    public enum Failure: Error, Equatable, Sendable {
        /// There is no such name, or it has no such records.
        case nothing
        /// No server answered.
        case noAnswer
        /// SERVFAIL
        case serverFailed
        /// REFUSED
        case serverRefused
    }

    /// Asks one question. Blocks, for some seconds if no server answers.
    /// - Parameters:
    ///   - name: an absolute name in presentation form; no search list is applied.
    ///   - type: the type of the records, of class IN, by its number.
    ///   - bytes: the most bytes of the answer; a longer one is cut.
    /// - Returns: the server's message, which anybody may have sent.
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
