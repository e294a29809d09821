/// Rules for aliases, the local names of peers: which ones are valid, and the one a peer gets when it is trusted.
public enum PeerAlias {
    public static let bytes = NameKey.bytes

    /// The alias of a newly trusted peer: its name if that is free and valid. Otherwise the name and the short UUID, or `peer` and the
    /// short UUID if the name has no visible character.
    ///
    /// - Parameter isTaken: whether another peer has an alias with this key.
    public static func made(of name: String, for peer: PeerID, isTaken: (NameKey) -> Bool) -> String {
        func isFree(_ alias: String) -> Bool { NameKey(alias).map { !isTaken($0) } ?? false }
        let plain = PeerName.line(String(PeerName.line(name).unicodeScalars.filter { $0 != "\u{FFFD}" }))
        // An alias is no longer than an announced name, because people read and type it.
        if plain.utf8.count <= PeerName.displayBytes, fault(plain, of: peer) == nil, isFree(plain) { return plain }
        let base = NameKey(plain) == nil ? "peer" : PeerName.line(PeerName.cut(plain, bytes: PeerName.displayBytes))
        var alias = "\(base) \(peer.shortID)"
        var number = 2
        while !isFree(alias) {
            alias = "\(base) \(peer.shortID) \(number)"
            number += 1
        }
        return alias
    }

    /// A sentence about why a text is invalid as an alias of this peer; `nil` if it is valid.
    public static func fault(_ text: String, of peer: PeerID) -> String? {
        if let fault = textFault(text) { return fault }
        if PeerID.mayBegin(with: text) { return "An alias that reads as a UUID, or as the beginning of one, would name another peer." }
        if readsAsLabel(text, of: peer) {
            return "An alias does not end in the short UUID of another peer, nor in (stranger), (trusted) or (blocked)."
        }
        return nil
    }

    /// A sentence about why a text is invalid as an alias of any peer; `nil` for 1 to `bytes` bytes of printable text.
    public static func textFault(_ text: String) -> String? {
        guard !text.isEmpty, text.utf8.count <= bytes, TerminalText.clean(text).utf8.elementsEqual(text.utf8), NameKey(text) != nil else {
            return "An alias is 1 to \(bytes) bytes of printable text."
        }
        return nil
    }

    /// Whether a text could be mistaken for the display name of a peer without an alias (`PeerDisplayName`), because it ends like one.
    private static func readsAsLabel(_ text: String, of peer: PeerID) -> Bool {
        let words = text.utf8.map(ASCII.lowercased).split(separator: UInt8(ascii: " "))
        guard let last = words.last else { return false }
        if Trust.allCases.contains(where: { last.elementsEqual("(\($0.rawValue))".utf8) }) { return true }
        return last.count == 8 && last.allSatisfy { Hexadecimal.value(of: $0) != nil }
            && !last.elementsEqual(peer.shortID.utf8.map(ASCII.lowercased))
    }
}

extension PeerID {
    /// Minimum characters of a UUID prefix that can select a peer.
    public static let prefixLength = 4

    /// Whether the text can be a prefix of a UUID, ignoring case.
    public static func mayBegin(with text: String) -> Bool {
        (prefixLength...36).contains(text.utf8.count)
            && text.utf8.enumerated().allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : Hexadecimal.value(of: byte) != nil
            }
    }

    /// Whether this UUID has the prefix, of at least `prefixLength` characters, ignoring case.
    public func begins(with text: String) -> Bool {
        PeerID.mayBegin(with: text) && description.utf8.starts(with: text.utf8.map(ASCII.uppercased))
    }
}
