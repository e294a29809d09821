import HexlistDiscovery
import HexlistModel

/// The result of a query.
public enum DNSOutcome<Value: Sendable>: Sendable {
    /// A response that is valid for `seconds`.
    case found(Value, seconds: Int)
    /// The server responded that there are no such records.
    case none
    /// No server sent a usable response. The text is for the user.
    case failed(String)
}

extension DNSOutcome: Equatable where Value: Equatable {}

/// DNS record types used by Hexlist.
public enum DNSType: Int32, Sendable {
    case address = 1
    case pointer = 12
    case text = 16
    case address6 = 28
    case service = 33
}

/// Finds services of one domain (RFC 6763), with a function that sends one query.
struct ServiceLookup {
    typealias Ask = (DNSName, DNSType) -> DNSOutcome<DNSMessage>

    /// Maximum instances of a domain, and maximum addresses of an instance.
    static let instances = 1_024
    static let addresses = 8
    /// Maximum aliases (CNAME) followed in a response.
    private static let aliases = 8

    let ask: Ask

    /// Queries the instances of a service type.
    /// - Returns: the unique first labels of the instances, in the server's order; at most `instances`.
    func browse(_ services: DNSName) -> DNSOutcome<[[UInt8]]> {
        switch ask(services, .pointer) {
        case .failed(let text): return .failed(text)
        case .none: return .none
        case .found(let message, let least):
            var seen: Set<[UInt8]> = []
            let owners = Self.owners(services, message)
            let labels = message.answers.compactMap { answer -> [UInt8]? in
                // Instances of other domains do not belong to this one.
                guard case .pointer(let target) = answer.data, owners.contains(answer.name), let label = target.label(under: services),
                    seen.count < Self.instances, seen.insert(label).inserted
                else { return nil }
                return label
            }
            return labels.isEmpty ? .none : .found(labels, seconds: least)
        }
    }

    /// Queries SRV, TXT and the addresses of the host. Returns one resolution per address, in a stable order.
    func resolve(_ instance: DNSName) -> DNSOutcome<[Resolution]> {
        var seconds = Int.max
        var service: (priority: UInt16, port: UInt16, target: DNSName)?
        switch ask(instance, .service) {
        case .failed(let text): return .failed(text)
        case .none: return .none
        case .found(let message, let least):
            seconds = min(seconds, least)
            let owners = Self.owners(instance, message)
            for answer in message.answers where owners.contains(answer.name) {
                guard case .service(let priority, let port, let target) = answer.data, !target.labels.isEmpty else { continue }
                if service.map({ priority < $0.priority }) ?? true { service = (priority, port, target) }
            }
        }
        guard let service else { return .none }
        var txt: [[UInt8]] = []
        switch ask(instance, .text) {
        case .failed(let text): return .failed(text)
        case .none: break
        case .found(let message, let least):
            seconds = min(seconds, least)
            let owners = Self.owners(instance, message)
            let texts = message.answers.compactMap { answer -> [[UInt8]]? in
                guard case .text(let strings) = answer.data, owners.contains(answer.name) else { return nil }
                return strings
            }
            txt = texts.first ?? []
        }
        var found: [String] = []
        var failure: String?
        for type in [DNSType.address, .address6] {
            switch ask(service.target, type) {
            case .failed(let text): failure = text
            case .none: break
            case .found(let message, let least):
                seconds = min(seconds, least)
                found += Self.texts(of: message, at: service.target).sorted()
            }
        }
        // A failure for one address family is ignored if the other one has an address.
        if let failure, found.isEmpty { return .failed(failure) }
        let resolutions = found.prefix(Self.addresses).map {
            Resolution(host: service.target.description, address: $0, port: service.port, txt: txt)
        }
        return resolutions.isEmpty ? .none : .found(resolutions, seconds: seconds)
    }

    private static func texts(of message: DNSMessage, at host: DNSName) -> [String] {
        let owners = owners(host, message)
        return message.answers.compactMap { answer in
            guard case .address(let bytes) = answer.data, owners.contains(answer.name) else { return nil }
            return IPAddress(bytes: bytes)?.description
        }
    }

    /// The queried name and its aliases (CNAME records in the response). Records of any of these names answer the query.
    private static func owners(_ name: DNSName, _ message: DNSMessage) -> [DNSName] {
        var owners = [name]
        while owners.count <= aliases {
            let next = message.answers.lazy.compactMap { answer -> DNSName? in
                guard case .alias(let target) = answer.data, answer.name == owners.last, !owners.contains(target) else { return nil }
                return target
            }.first
            guard let next else { break }
            owners.append(next)
        }
        return owners
    }
}

extension DNSMessage {
    /// Seconds for which the response may be cached: the least TTL of its records.
    var seconds: Int { Int(answers.map(\.ttl).min() ?? 0) }
}
