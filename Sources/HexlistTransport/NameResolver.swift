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

/// Resolves the host names of configured peers through the system. One lookup per name at a time, so a hanging resolver blocks at most one
/// thread per name. Confined to its event loop.
final class NameResolver {
    typealias LookupResult = Result<[IPAddress], DialError>

    /// Maximum number of addresses of one name that are used.
    private static let addresses = 8

    private let eventLoop: any EventLoop
    private let threads: NIOThreadPool
    private var waiting: [String: [(LookupResult) -> Void]] = [:]

    /// - Parameter threads: the threads that a lookup blocks.
    init(eventLoop: any EventLoop, threads: NIOThreadPool = .singleton) {
        self.eventLoop = eventLoop
        self.threads = threads
    }

    /// - Parameter completion: called exactly once, on the loop, after this method returns. There is no timeout.
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

    /// Resolves a name. Blocks.
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
            return nil  // another socket family, which is not used here
        }
    }
}
