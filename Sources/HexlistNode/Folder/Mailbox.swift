import HexlistEnvelope
import HexlistFiles
import HexlistModel
import HexlistTransport

/// This machine's mailbox in a shared folder, and those of its peers. Blocks; runs on the file threads.
struct Mailbox: Sendable {
    private static let cardName = "card.hxc"
    /// Maximum number of envelopes that are read at once. No more are read once their hexes weigh `ProtocolLimits.sessionWeight`.
    private static let readFiles = 64
    /// Seconds for which a file that cannot be opened may still be incomplete.
    private static let completionTime = 86_400

    private let folder: MailboxFolder
    private let own: PeerID
    private let boot: BootNonce
    private let signer: IdentitySigner
    let card: Card
    private let opener: EnvelopeOpener

    /// - Throws: an error of the cryptographic library.
    init(path: String, identity: Identity, boot: BootNonce) throws {
        folder = MailboxFolder(path: path)
        own = identity.peerID
        self.boot = boot
        signer = IdentitySigner(keyInfo: identity.keyInfo, sign: identity.signature(of:))
        let key = try SealingPrivateKey(seed: identity.secret(for: SealingPrivateKey.purpose))
        card = try Card(of: signer, sealingKey: key)
        opener = EnvelopeOpener(key: key, fingerprint: identity.fingerprint)
    }

    var ownPath: String { "\(folder.path)/\(own)" }

    /// An opened envelope.
    struct Arrival: Sendable {
        var file: String
        var id: Envelope.ID
        var sender: Fingerprint
        var signedAt: UInt64
        var boot: BootNonce
        var contents: LetterContents
    }

    /// The envelopes in the own mailbox, in the order of their names.
    struct Arrivals: Sendable {
        var letters: [Arrival] = []
        /// The files to remove, because they are not letters of trusted peers.
        var removals: [String] = []
        var hasMore = false
    }

    /// Reads the own mailbox, which is created with the card if it is missing.
    /// - Throws: `FileFault` if the folder cannot be used.
    func arrivals(now: Int64, trust: (Fingerprint) -> Trust) throws -> Arrivals {
        try folder.create(own.description)
        if try folder.read(Self.cardName, in: own.description, sizes: Card.byteCount...Card.byteCount)?.bytes != card.bytes {
            // Each signature is different, so a valid card with the same keys is not replaced.
            if cardOf(own).map({ !$0.hasKeys(of: card) }) ?? true { try folder.write(card.bytes, as: Self.cardName, in: own.description) }
        }
        var arrivals = Arrivals()
        var weight = 0
        for file in try folder.names(in: own.description, where: { EnvelopeFileName($0) != nil }) {
            guard arrivals.letters.count < Self.readFiles, weight < ProtocolLimits.sessionWeight else {
                arrivals.hasMore = true
                break
            }
            // A file that cannot be read is skipped, so that the others are read.
            guard let content = (try? folder.read(file, in: own.description, sizes: 0...Envelope.sizes.upperBound)) ?? nil else { continue }
            do throws(EnvelopeFault) {
                let letter = try opener.open(content.bytes, now: now, trust: trust)
                guard let id = Envelope(bytes: content.bytes)?.id else { continue }
                let contents = LetterContents(letter)
                let arrival = Arrival(
                    file: file, id: id, sender: letter.sender, signedAt: letter.signedAt, boot: letter.boot, contents: contents)
                arrivals.letters.append(arrival)
                weight += contents.weight
            } catch {
                if error.reason.mayBeIncomplete, content.age < Self.completionTime { continue }
                arrivals.removals.append(file)
            }
        }
        return arrivals
    }

    func remove(_ file: String) { folder.remove(file, in: own.description) }

    func contains(_ file: EnvelopeFileName, of peer: PeerID) -> Bool { folder.contains(file.description, in: peer.description) }

    func hasMailbox(_ peer: PeerID) -> Bool { folder.contains(Self.cardName, in: peer.description) }

    private func cardOf(_ peer: PeerID) -> Card? {
        let content = try? folder.read(Self.cardName, in: peer.description, sizes: Card.byteCount...Card.byteCount)
        guard let content = content ?? nil, let card = Card(bytes: content.bytes), card.isSignatureValid else { return nil }
        return card
    }

    /// Seals a letter for a trusted key and puts it into the peer's mailbox.
    /// - Returns: the file; `nil` if the peer has no mailbox with a card of this key.
    /// - Throws: `FileFault`, or `LetterTooLong`.
    func post(_ frames: [[UInt8]], to key: Fingerprint, at now: Int64) throws -> (name: EnvelopeFileName, bytes: Int)? {
        guard let recipient = cardOf(key.peerID), recipient.fingerprint == key else { return nil }
        let envelope = try Letter.seal(frames, at: UInt64(clamping: now), boot: boot, card: card, signer: signer, for: recipient)
        let name = EnvelopeFileName(postedAt: now, id: envelope.id)
        try folder.write(envelope.bytes, as: name.description, in: key.peerID.description)
        return (name, envelope.bytes.count)
    }

    /// Divides items into letters, as few as possible. An item's frames stay together.
    static func letters<Key>(_ items: [(key: Key, frames: [[UInt8]])]) -> [[(key: Key, frames: [[UInt8]])]] {
        var letters: [[(key: Key, frames: [[UInt8]])]] = []
        var bytes = Letter.maximumPayloadBytes + 1
        for item in items {
            let size = item.frames.reduce(0) { $0 + 4 + $1.count }
            if bytes + size > Letter.maximumPayloadBytes {
                letters.append([])
                bytes = 0
            }
            letters[letters.count - 1].append(item)
            bytes += size
        }
        return letters
    }
}
