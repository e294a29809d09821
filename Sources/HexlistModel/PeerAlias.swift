/// Rules for aliases, which are the local names of peers: which aliases are valid, and which one a newly trusted peer gets.
public enum PeerAlias {
    public static let bytes = NormalizedName.bytes

    /// Returns the alias for a newly trusted peer. This is the peer's name if it is valid and no other peer has it as an alias. Otherwise
    /// it is the name with the short UUID, or `peer` with the short UUID if the name has no visible character.
    ///
    /// - Parameter isTaken: whether another peer has an alias with this key.
    public static func made(of name: String, for peer: PeerID, isTaken: (NormalizedName) -> Bool) -> String {
        func isFree(_ alias: String) -> Bool { NormalizedName(alias).map { !isTaken($0) } ?? false }
        let plain = PeerName.line(String(PeerName.line(name).unicodeScalars.filter { $0 != "\u{FFFD}" }))
        // The alias has the same length limit as announced names, because people read and type it.
        if plain.utf8.count <= PeerName.displayBytes, fault(plain, of: peer) == nil, isFree(plain) { return plain }
        let base = NormalizedName(plain) == nil ? "peer" : PeerName.line(PeerName.cut(plain, bytes: PeerName.displayBytes))
        var alias = "\(base) \(peer.shortID)"
        var number = 2
        while !isFree(alias) {
            alias = "\(base) \(peer.shortID) \(number)"
            number += 1
        }
        return alias
    }

    /// Returns a sentence that explains why a text is not valid as an alias of this peer; `nil` if it is valid.
    public static func fault(_ text: String, of peer: PeerID) -> String? {
        if let fault = textFault(text) { return fault }
        if PeerID.mayBegin(with: text) { return "An alias that reads as a UUID, or as the beginning of one, would name another peer." }
        if readsAsLabel(text, of: peer) {
            return "An alias does not end in the short UUID of another peer, nor in (stranger), (trusted), (blocked), (guest) or (drop)."
        }
        return nil
    }

    /// Returns a sentence that explains why a text is not valid as an alias of any peer; `nil` for 1 to `bytes` bytes of printable text.
    public static func textFault(_ text: String) -> String? {
        guard !text.isEmpty, text.utf8.count <= bytes, TerminalText.clean(text).utf8.elementsEqual(text.utf8), NormalizedName(text) != nil
        else {
            return "An alias is 1 to \(bytes) bytes of printable text."
        }
        return nil
    }

    /// Whether a text could be mistaken for the display name of a peer without an alias (`PeerDisplayName`): it ends in a trust or kind in
    /// parentheses, such as `(blocked)`, or in eight hexadecimal digits other than the peer's own short UUID.
    private static func readsAsLabel(_ text: String, of peer: PeerID) -> Bool {
        let words = text.utf8.map(ASCII.lowercased).split(separator: UInt8(ascii: " "))
        guard let last = words.last else { return false }
        let marks = Trust.allCases.map(\.rawValue) + PeerKind.allCases.filter { !$0.hasKey }.map(\.rawValue)
        if marks.contains(where: { last.elementsEqual("(\($0))".utf8) }) { return true }
        return last.count == 8 && last.allSatisfy { Hexadecimal.value(of: $0) != nil }
            && !last.elementsEqual(peer.shortID.utf8.map(ASCII.lowercased))
    }
}

extension PeerID {
    /// Minimum length of a UUID prefix with which users can select a peer.
    public static let prefixLength = 4

    /// Whether the text can be the beginning of a UUID, ignoring case.
    public static func mayBegin(with text: String) -> Bool {
        (prefixLength...36).contains(text.utf8.count)
            && text.utf8.enumerated().allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : Hexadecimal.value(of: byte) != nil
            }
    }

    /// Whether this UUID begins with the text, ignoring case. The text must have at least `prefixLength` characters.
    public func begins(with text: String) -> Bool {
        PeerID.mayBegin(with: text) && description.utf8.starts(with: text.utf8.map(ASCII.uppercased))
    }
}
