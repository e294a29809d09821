/// The name of a DNS-SD instance, compared and hashed as bytes.
public struct InstanceKey: Hashable, Sendable, CustomStringConvertible {
    public var name: String
    public var type: String
    public var domain: String

    public init(name: String, type: String, domain: String) {
        self.name = name
        self.type = type
        self.domain = domain
    }

    public static func == (left: InstanceKey, right: InstanceKey) -> Bool {
        left.name.utf8.elementsEqual(right.name.utf8) && left.type.utf8.elementsEqual(right.type.utf8)
            && left.domain.utf8.elementsEqual(right.domain.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        for text in [name, type, domain] {
            var text = text
            text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
            hasher.combine(UInt8(0xFF))  // a terminator, which cannot occur in UTF-8
        }
    }

    public var description: String { "\(name).\(type).\(domain)" }
}

/// An announcement as a DNS-SD browser reports it: an instance on one interface with one IP version.
///
/// The value is a reference to shared content, because each record is stored in many tables.
public struct Record: Hashable, Sendable {
    private final class Content: Sendable {
        let key: InstanceKey
        let interface: Int32
        let ipv6: Bool
        let unicast: Int?

        init(key: InstanceKey, interface: Int32, ipv6: Bool, unicast: Int?) {
            self.key = key
            self.interface = interface
            self.ipv6 = ipv6
            self.unicast = unicast
        }
    }

    private let content: Content

    public var key: InstanceKey { content.key }
    public var interface: Int32 { content.interface }
    public var ipv6: Bool { content.ipv6 }
    /// For a record found by unicast DNS in a configured domain (`interface` is 0): the index of the host's address, because each address
    /// has a record of its own. `nil` for an announcement on a link.
    public var unicast: Int? { content.unicast }

    public init(key: InstanceKey, interface: Int32, ipv6: Bool, unicast: Int? = nil) {
        content = Content(key: key, interface: interface, ipv6: ipv6, unicast: unicast)
    }

    public static func == (left: Record, right: Record) -> Bool {
        left.content === right.content
            || left.interface == right.interface && left.ipv6 == right.ipv6 && left.unicast == right.unicast && left.key == right.key
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(key)
        hasher.combine(interface)
        hasher.combine(ipv6)
        hasher.combine(unicast)
    }

    /// The display order of records: name, IPv4 before IPv6, interface.
    static func inOrder(_ left: Record, _ right: Record) -> Bool {
        guard left.key == right.key else { return left.key.name.utf8.lexicographicallyPrecedes(right.key.name.utf8) }
        guard left.ipv6 == right.ipv6 else { return right.ipv6 }
        return (left.interface, left.unicast ?? -1) < (right.interface, right.unicast ?? -1)
    }
}

/// A resolver's result for one record: SRV, one address, TXT.
public struct Resolution: Hashable, Sendable {
    /// The target host of SRV.
    public var host: String
    /// A numeric address without a scope; empty if there is none.
    public var address: String
    public var port: UInt16
    /// The received TXT strings; `TXTRecord` limits how many are read.
    public var txt: [[UInt8]]

    public init(host: String, address: String, port: UInt16, txt: [[UInt8]]) {
        self.host = host
        self.address = address
        self.port = port
        self.txt = txt
    }
}
