import Foundation
import TestSupport

/// systemd's side of the readiness protocol: a datagram socket to which a service writes `READY=1`.
struct NotifySocket: Sendable {
    let path: String
    private let descriptor: Int32
    private static let seconds = Patience.state

    init(path: String) throws {
        self.path = path
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        guard descriptor >= 0 else { throw Command.Failure("socket: \(String(cString: strerror(errno)))") }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { throw Command.Failure("\(path) is too long for a socket") }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        var limit = timeval(tv_sec: Self.seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        unlink(path)  // a socket that an earlier daemon left
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        guard bound == 0 else { throw Command.Failure("bind: \(String(cString: strerror(errno)))") }
    }

    /// Waits on its own thread, because the system call blocks.
    func ready() async throws {
        let descriptor = descriptor
        let isReady = try await called(within: .seconds(2 * Self.seconds)) { done in
            Thread.detachNewThread {
                var isReady = false
                var buffer = [UInt8](repeating: 0, count: 4_096)
                while !isReady {
                    let count = recv(descriptor, &buffer, buffer.count, 0)
                    guard count > 0 else { break }
                    isReady = String(decoding: buffer.prefix(count), as: UTF8.self).split(separator: "\n").contains("READY=1")
                }
                close(descriptor)
                done(isReady)
            }
        }
        guard isReady else { throw Command.Failure("hexlistd was not ready in \(Self.seconds) s") }
    }
}
