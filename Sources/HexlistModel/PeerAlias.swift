/// The rules for aliases, the local names of peers: which texts are allowed, and which alias a peer gets when it is trusted.
public enum PeerAlias {
    public static let bytes = NameKey.bytes

    /// The alias for a peer that is trusted now: its name if that is free and allowed, else its name, or `peer` if nothing of the name can
    /// be shown, followed by the short UUID.
    ///
    /// - Parameter isTaken: whether another peer has an alias with that key.
    public static func made(of name: String, for peer: PeerID, isTaken: (NameKey) -> Bool) -> String {
        func isFree(_ alias: String) -> Bool { NameKey(alias).map { !isTaken($0) } ?? false }
        let plain = PeerName.line(String(PeerName.line(name).unicodeScalars.filter { $0 != "\u{FFFD}" }))
        // At most as many bytes as an announcement's name: an alias is read in lists and typed by people.
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

    /// A sentence that says why a text cannot be an alias of that peer; `nil` if it can.
    public static func fault(_ text: String, of peer: PeerID) -> String? {
        if let fault = textFault(text) { return fault }
        if PeerID.mayBegin(with: text) { return "An alias that reads as a UUID, or as the beginning of one, would name another peer." }
        if readsAsLabel(text, of: peer) {
            return "An alias does not end in the short UUID of another peer, nor in (stranger), (trusted) or (blocked)."
        }
        return nil
    }

    /// A sentence that says why a text can be no alias of any peer in any version; `nil` for 1 to `bytes` bytes of printable text.
    public static func textFault(_ text: String) -> String? {
        guard !text.isEmpty, text.utf8.count <= bytes, TerminalText.clean(text).utf8.elementsEqual(text.utf8), NameKey(text) != nil else {
            return "An alias is 1 to \(bytes) bytes of printable text."
        }
        return nil
    }

    /// Whether a text ends like the label of a peer without an alias (`PeerDisplayName`), for which it would be mistaken.
    private static func readsAsLabel(_ text: String, of peer: PeerID) -> Bool {
        let words = text.utf8.map(ASCII.lowercased).split(separator: UInt8(ascii: " "))
        guard let last = words.last else { return false }
        if Trust.allCases.contains(where: { last.elementsEqual("(\($0.rawValue))".utf8) }) { return true }
        return last.count == 8 && last.allSatisfy { Hexadecimal.value(of: $0) != nil }
            && !last.elementsEqual(peer.shortID.utf8.map(ASCII.lowercased))
    }
}

extension PeerID {
    /// The least number of a UUID's characters that name a peer.
    public static let prefixLength = 4

    /// Whether the UUID of some peer may begin with the text, regardless of letter case.
    public static func mayBegin(with text: String) -> Bool {
        (prefixLength...36).contains(text.utf8.count)
            && text.utf8.enumerated().allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : Hexadecimal.value(of: byte) != nil
            }
    }

    /// Whether this UUID begins with the text, of `prefixLength` characters or more, regardless of letter case.
    public func begins(with text: String) -> Bool {
        PeerID.mayBegin(with: text) && description.utf8.starts(with: text.utf8.map(ASCII.uppercased))
    }
}
