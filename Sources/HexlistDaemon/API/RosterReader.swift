import HexlistAPI
import HexlistEnvelope
import HexlistModel
import HexlistNode
import HexlistStore

/// Reads a roster incrementally, one peer per line. A line with any error is refused as a whole, because trust depends on it; the other
/// lines are still read.
struct RosterReader {
    private(set) var entries: [(line: Int, entry: RosterEntry)] = []
    private(set) var refusals: [BulkRefusal] = []
    private var bytes = 0
    private var splitter = LineSplitter(limit: LocalAPI.bodyBytes)

    /// - Throws: `tooLarge` for more than `LocalAPI.rosterBytes`, `badRequest` for more than `LocalAPI.rosterEntries` peers.
    mutating func feed(_ piece: UnsafeRawBufferPointer) throws(HexlistError) {
        bytes += piece.count
        guard bytes <= LocalAPI.rosterBytes else {
            throw HexlistError(.tooLarge, "The body of the request is longer than \(LocalAPI.rosterBytes) bytes.", hint: "Split it.")
        }
        for (number, line) in splitter.lines(piece) { try take(number, line) }
    }

    mutating func finish() throws(HexlistError) {
        for (number, line) in splitter.lastLine() { try take(number, line) }
    }

    private mutating func take(_ number: Int, _ line: [UInt8]?) throws(HexlistError) {
        guard line.map({ !Self.isBlank($0) }) ?? true else { return }
        guard entries.count + refusals.count < LocalAPI.rosterEntries else {
            throw HexlistError(.badRequest, "The roster has more than \(LocalAPI.rosterEntries) peers.", hint: "Split it.")
        }
        do {
            entries.append((number, try Self.entry(line)))
        } catch {
            // The message is cleaned, because it may quote the input.
            let message = TerminalText.clean(error.message, columns: 200)
            refusals.append(BulkRefusal(line: number, code: error.code, message: message))
        }
    }

    private struct Fault: Error {
        var code = "malformed"
        var message: String
    }

    private static func isBlank(_ line: [UInt8]) -> Bool { line.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D } }

    private static func entry(_ line: [UInt8]?) throws(Fault) -> RosterEntry {
        guard let line else { throw Fault(code: "tooLarge", message: "The line is longer than \(LocalAPI.bodyBytes) bytes.") }
        let peer: RosterPeer
        do {
            peer = try RosterPeer(jsonBytes: line)
        } catch {
            throw Fault(message: "Not a peer: \(error.description).")
        }
        guard peer.fingerprint.utf8.count == 64, let fingerprint = Fingerprint(peer.fingerprint) else {
            throw Fault(message: "Its fingerprint is not 64 hexadecimal digits.")
        }
        guard PeerID(peer.uuid) == fingerprint.peerID else {
            let message = "Its UUID does not follow from its fingerprint; that of this key is \(fingerprint.peerID)."
            throw Fault(code: "wrongKey", message: message)
        }
        guard let trust = Trust(rawValue: peer.trust) else {
            throw Fault(message: "Unknown trust `\(TerminalText.clean(peer.trust, columns: 40))`: use trusted, blocked or stranger.")
        }
        guard let kind = peer.kind.map({ PeerKind(utf8: $0.utf8) }) ?? .hexlist else {
            throw Fault(code: "unknownKind", message: "Unknown kind `\(TerminalText.clean(peer.kind ?? "", columns: 40))`.")
        }
        if let alias = peer.alias, let fault = PeerAlias.textFault(alias) { throw Fault(message: fault) }
        return RosterEntry(
            kind: kind, fingerprint: fingerprint, name: PeerName.cut(peer.name, bytes: NormalizedName.bytes), alias: peer.alias,
            trust: trust,
            addresses: try addresses(peer.addresses), groups: try groups(peer.groups),
            card: try peer.card.map { text throws(Fault) in try card(text, of: fingerprint) })
    }

    private static func card(_ text: String, of key: Fingerprint) throws(Fault) -> PeerCard {
        guard let card = Card(base64: text), card.isSignatureValid else { throw Fault(message: "Its card is damaged.") }
        guard card.fingerprint == key else { throw Fault(code: "wrongKey", message: "Its card belongs to another key.") }
        return PeerCard(bytes: card.bytes, serial: card.serial)
    }

    private static func groups(_ names: [String]) throws(Fault) -> [String] {
        guard names.count <= RosterEntry.groupLimit else { throw Fault(message: "It is in more than \(RosterEntry.groupLimit) groups.") }
        for name in names { if let fault = GroupName.fault(name) { throw Fault(message: fault) } }
        return names
    }

    private static func addresses(_ texts: [String]) throws(Fault) -> [RosterAddress] {
        guard texts.count <= PeerRecord.endpointLimit else {
            throw Fault(message: "It has more than \(PeerRecord.endpointLimit) addresses.")
        }
        var addresses: [RosterAddress] = []
        for text in texts {
            guard text.utf8.count <= 300, !text.utf8.contains(UInt8(ascii: "%")), let parsed = SettingKey.staticPeer(text) else {
                throw Fault(message: "`\(TerminalText.clean(text, columns: 60))` is not a `host:port` that another machine can reach.")
            }
            let found = RosterAddress(host: parsed.host, port: parsed.port)
            if !addresses.contains(found) { addresses.append(found) }
        }
        return addresses
    }
}
