import HexlistAPI
import HexlistJSON

/// What `nft -j list ruleset` says of a packet.
enum NftRules {
    /// The base chain that decides, and what it decides.
    struct Finding: Sendable, Equatable {
        var family: String
        var table: String
        var chain: String
        var verdict: FilterChains.Verdict

        /// Puts a rule before all others of the chain.
        func line(for packet: IncomingPacket) -> String {
            "sudo nft insert rule \(family) \(table) \(chain) \(packet.carrier.rawValue) dport \(packet.port) accept"
        }
    }

    private struct Table: Hashable {
        var family: String
        var name: String
    }

    /// - Returns: one finding for each chain that sees incoming packets; `nil` for what is no ruleset.
    static func findings(_ json: [UInt8], packet: IncomingPacket) -> [Finding]? {
        guard let objects = (try? JSONObject(JSONValue(parsing: json)))?["nftables"]?.elements else { return nil }
        var tables: [Table: FilterChains] = [:]
        var bases: [(table: Table, chain: String, accepts: Bool)] = []
        for object in objects {
            guard let object = try? JSONObject(object) else { continue }
            if let chain = object["chain"].flatMap({ try? JSONObject($0) }), let table = Self.table(chain), let name = chain["name"]?.string
            {
                tables[table, default: FilterChains()].rules[name] = []
                if chain["hook"]?.string == "input", chain["type"]?.string == "filter" {
                    bases.append((table, name, chain["policy"]?.string != "drop"))
                }
            } else if let rule = object["rule"].flatMap({ try? JSONObject($0) }), let table = Self.table(rule),
                let name = rule["chain"]?.string
            {
                tables[table, default: FilterChains()].rules[name, default: []].append(Self.rule(rule["expr"]?.elements ?? [], packet))
            }
        }
        let families = ["inet", packet.isIPv6 ? "ip6" : "ip"]
        return bases.filter { families.contains($0.table.family) }.compactMap { base in
            tables[base.table].map {
                Finding(
                    family: base.table.family, table: base.table.name, chain: base.chain,
                    verdict: $0.verdict(from: base.chain, accepts: base.accepts))
            }
        }
    }

    private static func table(_ object: JSONObject) -> Table? {
        guard let family = object["family"]?.string, let name = (object["table"] ?? object["name"])?.string else { return nil }
        return Table(family: family, name: name)
    }

    private static func rule(_ expressions: [JSONValue], _ packet: IncomingPacket) -> FilterRule {
        var rule = FilterRule(match: .yes, action: .none)
        for expression in expressions {
            guard let object = try? JSONObject(expression), let name = object.names.first, let value = object[name] else {
                rule.match = rule.match && .maybe
                continue
            }
            switch name {
            case "match": rule.match = rule.match && match(value, packet)
            case "accept": rule.action = .accept
            case "drop", "reject": rule.action = .drop
            case "return": rule.action = .return
            case "jump", "goto":
                let target = (try? JSONObject(value))?["target"]?.string ?? ""
                rule.action = name == "jump" ? .jump(target) : .goto(target)
            case "vmap":
                let (match, action) = map(value, packet)
                rule.match = rule.match && match
                rule.action = action
            case "counter", "log", "comment", "notrack", "mangle": break
            case "xt", "queue", "tproxy": rule.action = .unknown
            default: rule.match = rule.match && .maybe  // limits, sets, what a later nft has
            }
        }
        return rule
    }

    // MARK: Matches

    private static func match(_ json: JSONValue, _ packet: IncomingPacket) -> RuleMatch {
        guard let object = try? JSONObject(json), let left = object["left"], let right = object["right"] else { return .maybe }
        // Of a header that is not there nothing is equal, and nothing is different.
        guard let found = compare(left, right, packet) else { return .no }
        return object["op"]?.string == "!=" ? !found : object["op"].map { ["==", "in"].contains($0.string ?? "") } == true ? found : .maybe
    }

    /// - Returns: `nil` where the packet has nothing that could be compared.
    private static func compare(_ left: JSONValue, _ right: JSONValue, _ packet: IncomingPacket) -> RuleMatch? {
        guard let left = try? JSONObject(left), let kind = left.names.first, let what = left[kind].flatMap({ try? JSONObject($0) }) else {
            return .maybe
        }
        let key = what["key"]?.string ?? what["field"]?.string ?? ""
        let values = elements(right)
        switch (kind, key) {
        case ("ct", "state"): return any(values) { RuleMatch($0.string == "new") }
        case ("ct", "status"): return any(values) { _ in .no }  // what a connection has that was answered, or sent elsewhere
        case ("meta", "iif"), ("meta", "iifname"): return any(values) { $0.string.map { packet.comesIn(on: $0, wildcard: "*") } ?? .maybe }
        case ("meta", "l4proto"): return any(values) { RuleMatch($0.string == packet.carrier.rawValue) }
        case ("meta", "nfproto"): return any(values) { RuleMatch($0.string == (packet.isIPv6 ? "ipv6" : "ipv4")) }
        case ("meta", "pkttype"): return any(values) { RuleMatch($0.string == (packet.isMulticast ? "multicast" : "host")) }
        case ("fib", _):
            guard what["result"]?.string == "type", what["flags"].map(elements)?.compactMap(\.string) == ["daddr"] else { return .maybe }
            return any(values) { $0.string.map(packet.goes(toType:)) ?? .maybe }
        // An ordinary packet has neither, which `missing` asks for.
        case ("exthdr", _): return right.bool.map { RuleMatch(!$0) }
        case ("rt", "ipsec"): return right.bool.map { RuleMatch(!$0) } ?? .maybe
        case ("payload", let field):
            switch what["protocol"]?.string ?? "" {
            case packet.carrier.rawValue where field == "dport", "th" where field == "dport":
                return any(values) { port($0, packet.port) }
            case packet.carrier.rawValue, "th", "ether": return .maybe
            case "ip", "ip6":
                guard packet.isIPv6 == (what["protocol"]?.string == "ip6") else { return nil }
                switch field {
                case "protocol", "nexthdr": return any(values) { RuleMatch($0.string == packet.carrier.rawValue) }
                case "daddr": return any(values) { destination($0, packet) }
                default: return .maybe
                }
            default: return nil  // another protocol's header
            }
        default: return .maybe
        }
    }

    /// An address, or a network.
    private static func destination(_ json: JSONValue, _ packet: IncomingPacket) -> RuleMatch {
        if let address = json.string { return packet.goes(to: address, length: nil) }
        guard let prefix = (try? JSONObject(json))?["prefix"].flatMap({ try? JSONObject($0) }), let address = prefix["addr"]?.string,
            let length = prefix["len"]?.integer.flatMap(Int.init(exactly:))
        else { return .maybe }
        return packet.goes(to: address, length: length)
    }

    private static func elements(_ json: JSONValue) -> [JSONValue] {
        if let list = json.elements { return list }
        return (try? JSONObject(json))?["set"]?.elements ?? [json]
    }

    private static func any(_ values: [JSONValue], _ test: (JSONValue) -> RuleMatch) -> RuleMatch {
        var found = RuleMatch.no
        for value in values {
            // A named set: `@name`.
            let match = value.string?.hasPrefix("@") == true ? .maybe : test(value)
            if match == .yes { return .yes }
            if match == .maybe { found = .maybe }
        }
        return found
    }

    private static func port(_ json: JSONValue, _ wanted: Int) -> RuleMatch {
        if let number = json.integer { return RuleMatch(Int(number) == wanted) }
        if let range = (try? JSONObject(json))?["range"]?.elements, range.count == 2, let low = range[0].integer,
            let high = range[1].integer
        {
            return RuleMatch(low <= Int64(wanted) && Int64(wanted) <= high)
        }
        return .maybe
    }

    /// A verdict looked up in a map, as `ct state vmap { established : accept, invalid : drop }`.
    private static func map(_ json: JSONValue, _ packet: IncomingPacket) -> (RuleMatch, FilterRule.Action) {
        guard let object = try? JSONObject(json), let key = object["key"], let pairs = object["data"].map(elements) else {
            return (.yes, .unknown)
        }
        var mayMatch = false
        for pair in pairs {
            guard let pair = pair.elements, pair.count == 2 else { return (.yes, .unknown) }
            switch compare(key, pair[0], packet) {
            case .yes: return (mayMatch ? .maybe : .yes, rule([pair[1]], packet).action)
            case .no, nil: break
            case .maybe: mayMatch = true
            }
        }
        return mayMatch ? (.yes, .unknown) : (.no, .none)
    }
}
