public import HexlistJSON
import HexlistModel

/// A forest of hexes and their inner hexes, read from a file or to be written to one. In the array `hexes`, each hex comes after its
/// parent, and siblings are in their order.
public struct HexTree: Sendable, Equatable {
    public struct Link: Sendable, Equatable {
        public var url: String
        public var title: String
        /// The service's name; empty if there is none.
        public var service: String
        public var extra: [Member]

        public init(url: String, title: String = "", service: String = "", extra: [Member] = []) {
            self.url = url
            self.title = title
            self.service = service
            self.extra = extra
        }

        /// Removes the title if it only repeats the address.
        mutating func removeRepeatedTitle() {
            if title.utf8.elementsEqual(url.utf8) { title = "" }
        }
    }

    public struct Hex: Sendable, Equatable {
        /// The index of the enclosing hex; `nil` for an outermost hex.
        public var parent: Int?
        public var description: String
        public var color: String
        /// The sender that the file states, unverified; empty if there is none.
        public var senderUUID: String
        public var senderName: String
        public var extra: [Member]
        public var links: [Link]

        public init(
            parent: Int? = nil, description: String = "", color: String = "", senderUUID: String = "", senderName: String = "",
            extra: [Member] = [], links: [Link] = []
        ) {
            self.parent = parent
            self.description = description
            self.color = color
            self.senderUUID = senderUUID
            self.senderName = senderName
            self.extra = extra
            self.links = links
        }
    }

    /// A member of a hex's or link's JSON object that the protocol does not define. It is preserved.
    public struct Member: Sendable, Equatable {
        public var name: String
        public var value: JSONValue

        public init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }

        public init(_ name: String, _ text: String) { self.init(name, JSONValue(text)) }
    }

    public var hexes: [Hex]

    public init(hexes: [Hex] = []) { self.hexes = hexes }

    /// Returns the indices of the direct children of each hex. The outermost hexes are in an additional last list, at index `hexes.count`.
    func childLists() -> [[Int]] {
        var lists = [[Int]](repeating: [], count: hexes.count + 1)
        for (index, hex) in hexes.enumerated() { lists[hex.parent ?? hexes.count].append(index) }
        return lists
    }

    /// For each hex, whether it is the user's own: neither the hex nor an enclosing one has a sender.
    var areOwn: [Bool] {
        var own: [Bool] = []
        for hex in hexes { own.append(hex.senderUUID.isEmpty && hex.senderName.isEmpty && hex.parent.map { own[$0] } ?? true) }
        return own
    }

    /// The links that repeat the address of an earlier link. Addresses are compared in their normalized form (`NormalizedLinkAddress`).
    public struct RepeatedAddresses: Sendable, Equatable {
        public var count = 0
        /// The first repeated addresses, at most 5.
        public var first: [String] = []

        public init() {}
    }

    public var repeatedAddresses: RepeatedAddresses {
        var repeated = RepeatedAddresses()
        var known: Set<[UInt8]> = []
        for link in hexes.lazy.flatMap(\.links) where !known.insert(NormalizedLinkAddress.of(link.url)).inserted {
            repeated.count += 1
            if repeated.first.count < FileReading.Skip.shown { repeated.first.append(link.url) }
        }
        return repeated
    }

    public var linkCount: Int { hexes.reduce(0) { $0 + $1.links.count } }
}

extension HexTree.Link {
    /// Whether programs may make this link of a peer clickable.
    var isHarmless: Bool { LinkAddress.isHarmless(url) }
}

extension LinkAddress {
    private static let followed = ["http", "https", "ftp", "mailto"]

    /// Whether programs may make a link of a peer with this address clickable. `false` for `javascript:` and other schemes that run code.
    static func isHarmless(_ url: String) -> Bool {
        // Browsers ignore white space before an address.
        let url = TerminalText.clean(url).utf8.drop { $0 == UInt8(ascii: " ") }
        guard let colon = url.firstIndex(of: UInt8(ascii: ":")) else { return false }
        let scheme = url[..<colon].map(ASCII.lowercased)
        return Self.followed.contains { $0.utf8.elementsEqual(scheme) }
    }
}

extension [HexTree.Member] {
    func value(_ name: StaticString) -> JSONValue? { first { $0.name.utf8.elementsEqual(name.bytes) }?.value }
}

extension StaticString {
    var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
