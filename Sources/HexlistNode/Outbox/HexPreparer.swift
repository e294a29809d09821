import Crypto
import HexlistFiles
public import HexlistModel
public import HexlistStore
import HexlistWire

/// Encodes hexes for delivery: adds this machine as the sender of a hex that has none, and assigns message ids. Can be used on any thread.
public struct HexPreparer: Sendable {
    private let own: PeerID
    private let name: String
    /// The encoded members of a HexJM that name this node as the sender.
    private let ownSender: [UInt8]
    /// The random bits of message ids. They are a counter with a random start (RFC 9562, section 6.2), so that random numbers are generated
    /// once for a stream.
    private let random = UInt64.random(in: .min ... .max)
    private var counter = UInt64.random(in: .min ... .max)

    init(own: PeerID, name: String) {
        self.own = own
        self.name = PeerName.cut(name, bytes: ProtocolLimits.nameBytes)
        ownSender = HexEncoder.senders(uuid: own.description, name: self.name)
    }

    /// Appends a new hex.
    /// - Parameters:
    ///   - key: an idempotency key: the same key results in the same message id.
    ///   - line: the number of its line in the stream; 0 for a single hex.
    ///   - now: milliseconds since 1970.
    /// - Throws: `HexlistError` `badRequest` if the hex is too long for any peer.
    public mutating func prepare(
        _ hex: HexContent, key: String?, line: Int = 0, at now: Int64, into hexes: inout PreparedHexes
    ) throws(HexlistError) {
        let start = hexes.nextBody
        if hex.senderUUID.isEmpty, hex.senderName.isEmpty {
            HexEncoder.append(hex, senders: ownSender, to: &hexes.bodies)
        } else if !hex.senderUUID.isEmpty, !hex.senderName.isEmpty {
            HexEncoder.append(hex, to: &hexes.bodies)
        } else {
            HexEncoder.append(withSender(hex), to: &hexes.bodies)
        }
        let count = hexes.bodies.count - start
        guard count + ProtocolLimits.wrapperBytes <= ProtocolLimits.largestFrameBytes else {
            hexes.bodies.removeLast(count)
            throw HexlistError(
                .badRequest, "The hex has \(count) bytes; the limit is 16 MiB.", hint: "Split its links into several hexes.")
        }
        add(hex, key: key, line: line, at: now, to: &hexes)
    }

    /// Appends a stored hex, with its original sender and unknown members.
    mutating func forward(_ hex: HexContent, key: String?, at now: Int64, into hexes: inout PreparedHexes) {
        HexEncoder.append(hex, to: &hexes.bodies)
        add(hex, key: key, line: 0, at: now, to: &hexes)
    }

    /// Adds the message id, digest, subject and offers of a hex to `hexes`.
    /// - Parameter hex: the hex, whose body was appended already.
    private mutating func add(_ hex: HexContent, key: String?, line: Int, at now: Int64, to hexes: inout PreparedHexes) {
        hexes.add(
            line: line, messageID: messageID(key: key, at: now), digest: key == nil ? nil : Self.digest(HexEncoder.encode(hex)),
            subject: HexSubject.of(hex), offers: offers(in: hex))
    }

    /// The file offers of this machine to which a hex links.
    private func offers(in hex: HexContent) -> [[UInt8]] {
        var offers: [[UInt8]] = []
        for link in hex.links { add(link, of: hex, to: &offers) }
        for link in hex.childLinks { add(link, of: hex, to: &offers) }
        return offers
    }

    private func add(_ link: LinkContent, of hex: HexContent, to offers: inout [[UInt8]]) {
        let isOne = hex.withBytes(of: link.url) { $0.count > 47 && $0.prefix(10).elementsEqual("hexlist://".utf8) }
        guard isOne, let file = FileLink(hex.string(link.url)), file.peer == own, case .offer(let offer, _) = file.target else { return }
        offers.append(offer.bytes)
    }

    private func withSender(_ hex: HexContent) -> HexContent {
        var hex = hex
        if hex.senderUUID.isEmpty { hex.senderUUID = hex.add(own.description) }
        if hex.senderName.isEmpty { hex.senderName = hex.add(name) }
        return hex
    }

    /// A UUIDv8 of SHA-256(`hexlist-key-1` ‖ own UUID ‖ key): the same key results in the same id for every recipient.
    static func messageID(forKey key: String, own: PeerID) -> MessageID {
        var hash = SHA256()
        hash.update(data: Array("hexlist-key-1".utf8))
        hash.update(data: own.uuid.bytes)
        hash.update(data: Array(key.utf8))
        let uuid = UUIDBytes(bytes: Array(hash.finalize().prefix(16))) ?? .nil
        return MessageID(uuid.with(version: 8))
    }

    private mutating func messageID(key: String?, at milliseconds: Int64) -> MessageID {
        if let key { return Self.messageID(forKey: key, own: own) }
        counter &+= 1
        return MessageID(milliseconds: UInt64(clamping: milliseconds), random: random, counter)
    }

    private static func digest(_ bytes: [UInt8]) -> [UInt8] {
        bytes.withUnsafeBytes { SHA256.hash(data: $0).withUnsafeBytes { Array($0) } }
    }
}
