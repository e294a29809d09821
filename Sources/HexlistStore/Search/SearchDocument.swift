internal import HexlistJSON
internal import HexlistModel

/// The texts of one hex that are in the search index.
///
/// The texts must depend only on the stored rows of the hex: FTS5 can remove an entry only with exactly the texts with which it was
/// inserted.
struct SearchDocument {
    /// The version of the conversion from rows to texts. Increase it if the same rows result in other texts; the index is then rebuilt.
    static let format = 3
    /// Maximum number of parent domains of a host that get a key, in addition to the whole host.
    static let labels = 5
    /// Bytes up to which `keys` may grow for every hex, however short its texts are.
    static let minimumKeyBytes = 64 << 10

    /// The description, note and tags of the hex, folded like all texts (`FoldedText`).
    private(set) var about: [UInt8] = []
    /// The name of the sender, as stated in the hex.
    private(set) var sender: [UInt8] = []
    /// The URLs, descriptions, notes and tags of the links.
    private(set) var links: [UInt8] = []
    /// Keys for values that match only as a whole (`SearchKey`). If they exceed both `minimumKeyBytes` and twice the length of the texts,
    /// further hosts and services are omitted, because an entry is built in memory.
    private(set) var keys: [UInt8] = []
    /// The keys of hosts and services in `keys`, to add each only once.
    private var seen: Set<[UInt8]> = []

    var byteCount: Int { about.count + sender.count + links.count + keys.count }

    init(location: String, peer: Int64?, senderName: [UInt8], description: [UInt8], color: [UInt8], extra: [UInt8]) {
        about = FoldedText(description).bytes
        sender = FoldedText(senderName).bytes
        let annotations = Annotations(extra: extra)
        for text in [annotations.note] + annotations.tags where !text.isEmpty {
            about += SearchKey.gap + FoldedText(Array(text.utf8)).bytes
        }
        add(.place, Array(location.utf8))
        if let peer { add(.peer, Array(String(peer).utf8)) }
        if !color.isEmpty { add(.color, color) }
        for tag in annotations.tags { addOnce(.tag, SearchKey.folded(tag: tag)) }
    }

    mutating func add(url: [UInt8], description: [UInt8], service: [UInt8], extra: [UInt8]) {
        let annotations = Annotations(extra: extra)
        for text in [url, description, Array(annotations.note.utf8)] + annotations.tags.map({ Array($0.utf8) }) where !text.isEmpty {
            if !links.isEmpty { links += SearchKey.gap }
            links += FoldedText(text).bytes
        }
        keys += SearchKey.address(NormalizedLinkAddress.of(url))
        for tag in annotations.tags { addOnce(.tag, SearchKey.folded(tag: tag)) }
        if !service.isEmpty, !service.elementsEqual(Service.unknown.rawValue.utf8) { addOnce(.service, service) }
        guard let host = LinkTarget.hostForSearch(of: url) else { return }
        addOnce(.host, host)
        let dots = host.indices.filter { host[$0] == UInt8(ascii: ".") }
        for dot in dots.suffix(Self.labels) where dot + 1 < host.endIndex { addOnce(.host, Array(host[(dot + 1)...])) }
    }

    /// Adds the key of hexes with a link that is marked as dead.
    mutating func addDeadLinks() { add(.dead, []) }

    private mutating func add(_ kind: SearchKey.Kind, _ text: [UInt8]) { keys += SearchKey.key(kind, text) }

    private mutating func addOnce(_ kind: SearchKey.Kind, _ text: [UInt8]) {
        let key = SearchKey.key(kind, text)
        guard keys.count + key.count <= max(Self.minimumKeyBytes, 2 * (about.count + sender.count + links.count)) else { return }
        if seen.insert(key).inserted { keys += key }
    }
}

/// Encodes values, such as a host, as single words of the column `key` of the search index. A key consists of characters of Unicode's
/// private use area, ASCII letters and digits, which the tokenizer does not split, and ends with a space.
enum SearchKey {
    /// The kind of a value. It is the first character of a key: U+E100 plus the raw value.
    enum Kind: UInt8 {
        case peer, place, host, color, service, address, tag, dead
    }

    /// Maximum bytes of the value in a key; longer values are truncated. More than a host name can have.
    private static let longest = 255

    /// A word, U+E200, that separates two texts in one column, so that no phrase matches across them.
    static let gap: [UInt8] = [0x20, 0xEE, 0x88, 0x80, 0x20]

    /// Returns the key of a value. ASCII letters become lower case. Any other byte except a digit becomes the character U+E000 plus the
    /// byte.
    static func key(_ kind: Kind, _ text: [UInt8]) -> [UInt8] {
        var key: [UInt8] = [0xEE, 0x84, 0x80 | kind.rawValue]
        for byte in text.prefix(longest) {
            if ASCII.isAlphanumeric(byte) {
                key.append(ASCII.lowercased(byte))
            } else {
                key += [0xEE, 0x80 | byte >> 6, 0x80 | byte & 0x3F]
            }
        }
        key.append(0x20)
        return key
    }

    /// Returns the key of an `NormalizedLinkAddress`, which is a 64-bit hash (FNV-1a). Because of collisions, the caller has to compare the
    /// identities of matches.
    static func address(_ identity: [UInt8]) -> [UInt8] {
        let hash = identity.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return key(.address, Array(String(hash, radix: 32).utf8))
    }

    /// Returns a tag in the form in which tags are compared: in lower case, folded, without white space at both ends.
    static func folded(tag: String) -> [UInt8] {
        let bytes = FoldedText(Array(tag.lowercased().utf8)).bytes.drop { $0 == 0x20 }
        return Array(bytes.reversed().drop { $0 == 0x20 }.reversed())
    }
}

extension LinkTarget {
    /// Returns the host of a URL in ASCII; `nil` if it has no host, or if programs may interpret the URL differently.
    static func hostForSearch(of url: [UInt8]) -> [UInt8]? {
        plainHost(of: url)
            ?? (try? LinkTarget(String(decoding: url, as: UTF8.self), schemes: ["http", "https", "ftp", "ws", "wss"]))?.host
            .map { Array($0.utf8) }
    }

    /// Returns the host of an ASCII URL if it consists only of letters, digits, hyphens and dots; otherwise `nil`. A fast path for most
    /// URLs, which takes a tenth of the time.
    private static func plainHost(of url: [UInt8]) -> [UInt8]? {
        let (slash, question, hash, backslash) = (UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "\\"))
        guard url.count <= maximumBytes else { return nil }
        var index = 0
        while index < url.count, url[index] > 0x20, url[index] < 0x7F, url[index] != backslash { index += 1 }
        guard index == url.count else { return nil }
        guard let scheme = ["https://", "http://"].first(where: { url.starts(with: $0.utf8) }) else { return nil }
        let host = url.dropFirst(scheme.utf8.count).prefix { $0 != slash && $0 != question && $0 != hash }
        let labels = host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard host.count <= 253, let last = labels.last?.first, ASCII.isAlphanumeric(last), !ASCII.isDigit(last),
            labels.allSatisfy({ (1...63).contains($0.count) && $0.allSatisfy { ASCII.isAlphanumeric($0) || $0 == UInt8(ascii: "-") } })
        else { return nil }
        return host.map(ASCII.lowercased)
    }
}
