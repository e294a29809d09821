import HexlistModel
import NIOCore
import NIOPosix

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Looks up the host names of peers the user configured, through the system. There is one lookup per name at a time, so a resolver that
/// hangs holds one thread per name and no more. Confined to its event loop.
final class NameResolver {
    typealias Outcome = Result<[IPAddress], DialError>

    /// The most addresses dialled of one name.
    private static let addresses = 8

    private let eventLoop: any EventLoop
    private var waiting: [String: [(Outcome) -> Void]] = [:]

    init(eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    /// - Parameter completion: called exactly once, on the loop, after this returns, however long the system takes.
    func resolve(_ name: String, completion: @escaping (Outcome) -> Void) {
        guard (1...253).contains(name.utf8.count), !name.utf8.contains(0) else {
            return eventLoop.assumeIsolated().execute { completion(.failure(.nameNotFound("it is no name of a host"))) }
        }
        if waiting[name] != nil {
            waiting[name]?.append(completion)
            return
        }
        waiting[name] = [completion]
        NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) { Self.lookUp(name) }
            .assumeIsolated().whenComplete { result in
                let outcome: Outcome
                switch result {
                case .success(let found): outcome = found
                case .failure(let error): outcome = .failure(.failed("\(error)"))
                }
                for completion in self.waiting.removeValue(forKey: name) ?? [] { completion(outcome) }
            }
    }

    /// Looks a name up. Blocks.
    private static func lookUp(_ name: String) -> Outcome {
        var hints = addrinfo()
        #if canImport(Darwin) || canImport(Musl)
            hints.ai_socktype = SOCK_STREAM
        #else
            hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        #endif
        var first: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(name, nil, &hints, &first)
        defer { if let first { freeaddrinfo(first) } }
        guard code == 0 else { return .failure(.nameNotFound(String(cString: gai_strerror(code)))) }
        var found: [IPAddress] = []
        var next = first
        while let entry = next?.pointee, found.count < addresses {
            next = entry.ai_next
            guard let address = address(of: entry), !found.contains(address) else { continue }
            found.append(address)
        }
        return found.isEmpty ? .failure(.nameNotFound("it has no address")) : .success(found)
    }

    private static func address(of entry: addrinfo) -> IPAddress? {
        guard let raw = entry.ai_addr else { return nil }
        let bytes = UnsafeRawPointer(raw)
        switch entry.ai_family {
        case AF_INET where Int(entry.ai_addrlen) >= MemoryLayout<sockaddr_in>.size:
            return IPAddress(SocketAddress(bytes.loadUnaligned(as: sockaddr_in.self)))
        case AF_INET6 where Int(entry.ai_addrlen) >= MemoryLayout<sockaddr_in6>.size:
            return IPAddress(SocketAddress(bytes.loadUnaligned(as: sockaddr_in6.self)))
        default:
            return nil  // another socket family, which is not used here
        }
    }
}
