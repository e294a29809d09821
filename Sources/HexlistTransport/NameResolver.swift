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

/// Resolves host names with the resolver of the system. A name has at most one lookup at a time, so a resolver that hangs blocks at most
/// one thread per name. Used on its event loop only.
final class NameResolver {
    typealias LookupResult = Result<[IPAddress], DialError>

    /// Maximum number of addresses of a name that are returned.
    private static let addresses = 8

    private let eventLoop: any EventLoop
    private let threads: NIOThreadPool
    /// The completions of the lookups in progress, by name.
    private var waiting: [String: [(LookupResult) -> Void]] = [:]

    /// - Parameter threads: the threads on which lookups block.
    init(eventLoop: any EventLoop, threads: NIOThreadPool = .singleton) {
        self.eventLoop = eventLoop
        self.threads = threads
    }

    /// Resolves a name. There is no timeout.
    /// - Parameter completion: called exactly once, on the event loop, after this method has returned.
    func resolve(_ name: String, completion: @escaping (LookupResult) -> Void) {
        guard (1...253).contains(name.utf8.count), !name.utf8.contains(0) else {
            return eventLoop.assumeIsolated().execute { completion(.failure(.nameNotFound("it is no name of a host"))) }
        }
        if waiting[name] != nil {
            waiting[name]?.append(completion)
            return
        }
        waiting[name] = [completion]
        threads.runIfActive(eventLoop: eventLoop) { Self.lookUp(name) }
            .assumeIsolated().whenComplete { lookup in
                let result: LookupResult
                switch lookup {
                case .success(let found): result = found
                case .failure(let error): result = .failure(.failed("\(error)"))
                }
                for completion in self.waiting.removeValue(forKey: name) ?? [] { completion(result) }
            }
    }

    /// Resolves a name. Blocks until the system's resolver returns.
    private static func lookUp(_ name: String) -> LookupResult {
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
            return nil  // neither IPv4 nor IPv6
        }
    }
}
