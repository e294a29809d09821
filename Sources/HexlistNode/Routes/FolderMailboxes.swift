import HexlistEnvelope
import HexlistFiles
import HexlistModel

/// The mailboxes in a shared folder: this machine's own and those of its peers. Calls block and run on the file threads.
struct FolderMailboxes: Sendable {
    private static let cardName = "card.hxc"
    /// Bounds of one round of reading: opened envelopes, read files, and bytes of files. Files that are not valid envelopes count too.
    private static let roundLetters = 64
    private static let roundFiles = 256
    private static let roundBytes = 32 << 20
    /// Maximum age in seconds of a file that cannot be opened but may be incomplete, for example because it is still being synchronised.
    private static let completionTime = 86_400

    private let folder: MailboxFolder
    private let coder: EnvelopeCoder

    init(path: String, _ coder: EnvelopeCoder) {
        folder = MailboxFolder(path: path)
        self.coder = coder
    }

    private var own: PeerID { coder.own }
    private var card: Card { coder.card }

    var ownPath: String { "\(folder.path)/\(own)" }

    /// Whether other machines may change the folder without an event of this machine's kernel.
    var isOfNetwork: Bool { folder.isOfNetwork }

    /// Checks that the folder can be used.
    /// - Throws: `FileFault` if the folder cannot be used.
    func check() throws { try folder.check() }

    /// Creates this machine's mailbox and the card in it, if they are missing.
    /// - Throws: `FileFault` if the folder cannot be used.
    func create() throws {
        try folder.create(own.description)
        guard try folder.read(Self.cardName, in: own.description, sizes: Card.byteCount...Card.byteCount)?.bytes != card.bytes else {
            return
        }
        // Each signature is different, so a valid card with the same keys is not replaced.
        if card(in: own).map({ !$0.hasKeys(of: card) }) ?? true { try folder.write(card.bytes, as: Self.cardName, in: own.description) }
    }

    /// Reads the next envelopes of this machine's mailbox, in the order of their names.
    /// - Parameters:
    ///   - keepsIncomplete: whether files that may be incomplete are postponed, not dropped.
    ///   - isLeftOut: whether a file is skipped in this round.
    ///   - trust: the trust in a key.
    /// - Throws: `FileFault` if the folder cannot be read.
    func arrivals(
        now: Int64, keepsIncomplete: Bool, leavingOut isLeftOut: (String) -> Bool, trust: (Fingerprint) -> Trust
    ) throws -> MailboxRoundResult {
        var arrivals = MailboxRoundResult()
        var (files, bytes) = (0, 0)
        for file in try folder.names(in: own.description, where: { EnvelopeFileName($0) != nil && !isLeftOut($0) }) {
            guard arrivals.letters.count < Self.roundLetters, arrivals.weight < ProtocolLimits.sessionWeight, files < Self.roundFiles,
                bytes < Self.roundBytes
            else {
                arrivals.hasMore = true
                break
            }
            files += 1
            // A file that cannot be read, such as a pipe or a link, does not keep the others from being read.
            guard let content = (try? folder.read(file, in: own.description, sizes: 0...Envelope.sizes.upperBound)) ?? nil else {
                arrivals.postponed.append(file)
                continue
            }
            bytes += content.bytes.count
            do throws(EnvelopeFault) {
                try arrivals.open(file, content.bytes, with: coder, now: now, trust: trust)
            } catch {
                if keepsIncomplete, error.reason.mayBeIncomplete, content.age < Self.completionTime {
                    arrivals.postponed.append(file)
                } else {
                    arrivals.dropped.append((file, error))
                }
            }
        }
        return arrivals
    }

    /// The number of envelopes in the mailbox of a peer, at most `MailboxFolder.maximumNames`.
    func count(for peer: PeerID) -> Int {
        (try? folder.names(in: peer.description) { EnvelopeFileName($0) != nil }.count) ?? 0
    }

    /// Removes an envelope from this machine's mailbox.
    /// - Returns: whether the file no longer exists.
    func remove(_ file: String) -> Bool { folder.remove(file, in: own.description) }

    func contains(_ file: EnvelopeFileName, of peer: PeerID) -> Bool { folder.contains(file.description, in: peer.description) }

    /// Removes this machine's own envelope from the mailbox of a peer.
    func withdraw(_ file: EnvelopeFileName, of peer: PeerID) { _ = folder.remove(file.description, in: peer.description) }

    private func card(in peer: PeerID) -> Card? {
        let content = try? folder.read(Self.cardName, in: peer.description, sizes: Card.byteCount...Card.byteCount)
        guard let content = content ?? nil, let card = Card(bytes: content.bytes), card.isSignatureValid else { return nil }
        return card
    }

    /// The card to seal with: the card in the peer's mailbox or the known one, whichever has the greater serial.
    /// - Returns: `nil` if the peer has no mailbox, or if no card has this key. A file that is not a card of this key does not replace the
    ///   known card, because anybody who can write to the folder may have put it there.
    func card(of key: Fingerprint, known: Card?) -> Card? {
        guard let found = card(in: key.peerID), found.fingerprint == key else {
            return folder.contains(Self.cardName, in: key.peerID.description) ? known : nil
        }
        return known.map { $0.serial > found.serial ? $0 : found } ?? found
    }

    /// Seals a letter and puts it into the mailbox of its recipient.
    /// - Throws: `FileFault`, or `LetterTooLong`.
    func post(_ frames: [[UInt8]], to recipient: Card, at now: Int64) throws -> (file: EnvelopeFileName, bytes: Int) {
        let envelope = try coder.seal(frames, for: recipient, at: now)
        let name = EnvelopeFileName(postedAt: now, id: envelope.id)
        try folder.write(envelope.bytes, as: name.description, in: recipient.fingerprint.peerID.description)
        return (name, envelope.bytes.count)
    }
}
