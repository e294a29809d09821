import CAvahi
import HexlistDiscovery
import HexlistModel

// Resolvers that stay open and report changes.
extension AvahiLoop {
    /// Opens the resolver of a record. No effect if the record is not announced any more, because the request may be older than the
    /// withdrawal.
    func openResolver(_ record: Record) {
        guard announced.contains(record), resolvers[record] == nil, resolverRetries[record] == nil else { return }
        makeResolver(record, failures: 0)
    }

    func closeResolver(_ record: Record) {
        retireResolver(record)
        freeRetiredResolvers()
    }

    /// Closes the resolver of a record inside a callback: its later results are ignored, and `freeRetiredResolvers` frees it.
    func retireResolver(_ record: Record) {
        resolverRetries[record] = nil
        guard let resolver = resolvers.removeValue(forKey: record) else { return }
        resolverRecords[resolver] = nil
        retiredResolvers.append(resolver)
    }

    func freeRetiredResolvers() {
        for resolver in retiredResolvers { avahi_service_resolver_free(resolver) }
        retiredResolvers = []
    }

    /// Recreates failed resolvers after their back-off: a failed resolver does not report again.
    func retryResolvers() {
        for (record, retry) in resolverRetries where retry.at <= .now {
            closeResolver(record)
            makeResolver(record, failures: retry.failures)
        }
    }

    private func makeResolver(_ record: Record, failures: Int) {
        guard let client else { return }
        let family = record.ipv6 ? AvahiProtocol(AVAHI_PROTO_INET6) : AvahiProtocol(AVAHI_PROTO_INET)
        let resolver = avahi_service_resolver_new(
            client, AvahiIfIndex(record.interface), family, record.key.name, record.key.type, record.key.domain, family,
            AvahiLookupFlags(rawValue: 0),
            { resolver, _, _, event, _, _, _, host, address, port, txt, _, context in
                guard let loop = AvahiLoop.from(context), let resolver, let record = loop.resolverRecords[resolver] else { return }
                guard event == AVAHI_RESOLVER_FOUND else { return loop.resolverFailed(record, loop.clientError) }
                loop.resolverRetries[record] = nil
                let resolution = Resolution(
                    host: host.map { String(cString: $0) } ?? "", address: AvahiLoop.text(address), port: port, txt: AvahiLoop.strings(txt))
                loop.send(.resolved(record, resolution))
            }, context)
        guard let resolver else {
            resolverFailed(record, clientError, failures: failures)
            return
        }
        resolvers[record] = resolver
        resolverRecords[resolver] = record
        // The entry in `resolverRetries` stays until the resolver answers, so that consecutive failures are counted.
        if failures > 0 { resolverRetries[record] = (.now + Self.resolverTimeout, failures) }
    }

    /// Time after which a recreated resolver that has not answered is recreated again. A resolver normally reports a failure within 5 s.
    private static let resolverTimeout: Duration = .seconds(60)
    /// Back-off of 5, 10, 20, 40, 60 s, because each attempt sends some queries.
    private static let resolverBackoff = Backoff(from: .seconds(5), to: .seconds(60))

    private func resolverFailed(_ record: Record, _ text: String, failures: Int? = nil) {
        let failures = (failures ?? resolverRetries[record]?.failures ?? 0) + 1
        resolverRetries[record] = (.now + Self.resolverBackoff.pause(after: failures), failures)
        send(.resolveFailed(record, text))
    }

    /// An address in numeric form; empty if there is none.
    private static func text(_ address: UnsafePointer<AvahiAddress>?) -> String {
        guard let address else { return "" }
        var text = [CChar](repeating: 0, count: 64)  // AVAHI_ADDRESS_STR_MAX is 40
        guard avahi_address_snprint(&text, text.count, address) != nil else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Copies the strings of an Avahi list, at most one more than `TXTRecord` accepts.
    private static func strings(_ list: UnsafeMutablePointer<AvahiStringList>?) -> [[UInt8]] {
        var strings: [[UInt8]] = []
        var next = list
        while let entry = next, strings.count <= TXTRecord.maximumStrings {
            if let text = avahi_string_list_get_text(entry) {
                strings.append(Array(UnsafeBufferPointer(start: text, count: avahi_string_list_get_size(entry))))
            }
            next = avahi_string_list_get_next(entry)
        }
        return strings
    }
}
