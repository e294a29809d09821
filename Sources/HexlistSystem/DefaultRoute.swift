/// The IPv4 default route of this machine.
public enum DefaultRoute {
    /// Maximum bytes of the routing table that are read.
    private static let limit = 1 << 20

    /// The name of the interface of the default route; `nil` if there is none. With several routes, the one with the lowest metric.
    public static func interface() -> String? {
        (try? SmallFile.read("/proc/net/route", limit: limit)).flatMap(interface(in:))
    }

    /// Returns the name of the interface of the default route in a routing table; `nil` if there is none.
    /// - Parameter table: the content of /proc/net/route (proc_net(5)).
    static func interface(in table: String) -> String? {
        let routes = table.split(separator: "\n").dropFirst().compactMap { line -> (name: String, metric: Int)? in
            let fields = line.split(whereSeparator: \.isWhitespace)
            guard fields.count >= 8, fields[1] == "00000000", fields[7] == "00000000", let metric = Int(fields[6]) else { return nil }
            return (String(fields[0]), metric)
        }
        return routes.min { $0.metric < $1.metric }?.name
    }
}
