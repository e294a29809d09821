public import HexlistModel

/// Opens envelopes for one peer and checks them (Docs/Protocol.md, "Opening").
public struct EnvelopeOpener: Sendable {
    /// Maximum time by which the signing time of a letter may be ahead of the recipient's clock, in milliseconds: one day.
    static let maximumLead: UInt64 = 86_400_000
    /// Maximum age of a letter in milliseconds: 30 days. It limits replays. If a letter is replayed within 30 days, the message ids of its
    /// hexes show that they were received before.
    static let maximumAge: UInt64 = 30 * 86_400_000

    private let key: SealingPrivateKey
    private let fingerprint: Fingerprint

    /// - Parameter fingerprint: the fingerprint of the recipient's identity key.
    public init(key: SealingPrivateKey, fingerprint: Fingerprint) {
        self.key = key
        self.fingerprint = fingerprint
    }

    /// Opens an envelope. The first check that fails determines the thrown fault.
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - trust: returns the trust in a key. Called at most once, before signatures are checked. Not called for the recipient's own key,
    ///     because a machine may send a test letter to itself.
    /// - Throws: `EnvelopeFault`.
    public func open(_ bytes: [UInt8], now: Int64, trust: (Fingerprint) -> Trust) throws(EnvelopeFault) -> Letter {
        guard let envelope = Envelope(bytes: bytes) else { throw EnvelopeFault(.noEnvelope) }
        guard envelope.recipient.elementsEqual(fingerprint.peerID.uuid.bytes) else { throw EnvelopeFault(.notMine) }
        guard envelope.sealingKeyHash.elementsEqual(SealingPrivateKey.hash(of: key.publicKey)) else { throw EnvelopeFault(.otherKey) }
        guard let plaintext = envelope.plaintext(openedBy: key) else { throw EnvelopeFault(.damaged) }
        return try letter(plaintext[...], now: now, trust: trust)
    }

    /// Parses a decrypted letter, and checks its form, sender, signatures and time.
    func letter(_ plaintext: ArraySlice<UInt8>, now: Int64, trust: (Fingerprint) -> Trust) throws(EnvelopeFault) -> Letter {
        guard plaintext.count >= Letter.headBytes, let card = Card(bytes: plaintext.prefix(Card.byteCount)) else {
            throw EnvelopeFault(.malformed)
        }
        let sender = card.fingerprint
        func fault(_ reason: EnvelopeFault.Reason) -> EnvelopeFault { EnvelopeFault(reason, sender: sender) }
        if sender != fingerprint {
            switch trust(sender) {
            case .trusted: break
            case .stranger: throw fault(.stranger)
            case .blocked: throw fault(.blocked)
            }
        }
        var rest = plaintext.dropFirst(Card.byteCount)
        func take(_ count: Int) -> ArraySlice<UInt8> {
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        let signature = take(64)
        let signedAt = take(8).bigEndian(as: UInt64.self)
        let boot = BootNonce(take(8).bigEndian())
        let length = Int(take(4).bigEndian(as: UInt32.self))
        guard length <= rest.count, plaintext.count == Letter.plaintextSize(payload: length), rest.dropFirst(length).allSatisfy({ $0 == 0 })
        else { throw fault(.malformed) }
        let payload = rest.prefix(length)
        let signed = Letter.signedBytes(from: sender, to: fingerprint, at: signedAt, boot: boot, payload: payload)
        guard card.isSignatureValid, card.isValid(signature: signature, of: signed) else { throw fault(.forged) }
        let present = UInt64(clamping: now)
        guard signedAt <= present + Self.maximumLead else { throw EnvelopeFault(.early, sender: sender, lead: signedAt - present) }
        guard present <= Self.maximumAge || signedAt >= present - Self.maximumAge else { throw fault(.late) }
        guard let frames = Letter.frames(of: payload) else { throw fault(.malformed) }
        return Letter(card: card, signedAt: signedAt, boot: boot, frames: frames)
    }
}

/// The reason why an envelope was not opened.
public struct EnvelopeFault: Error, Sendable, Equatable {
    public enum Reason: String, Sendable, CaseIterable {
        /// The size or the magic is wrong, perhaps because the file is incomplete.
        case noEnvelope
        /// The envelope is for another recipient.
        case notMine
        /// The envelope was sealed with another sealing key, such as that of a former identity of this machine.
        case otherKey
        /// The envelope cannot be decrypted, because it was altered or is incomplete.
        case damaged
        /// The decrypted content does not have the form of a letter.
        case malformed
        case stranger, blocked
        /// The signature of the card or of the letter is invalid.
        case forged
        /// The letter was signed more than a day ahead of the recipient's clock.
        case early
        /// The letter was signed more than 30 days ago.
        case late

        /// Whether the envelope may be valid later, because its file may still be incomplete.
        public var mayBeIncomplete: Bool { self == .noEnvelope || self == .damaged }
    }

    public var reason: Reason
    /// The fingerprint of the letter's card; `nil` if no card was read. Its signatures were verified only with `early` and `late`, so with
    /// other reasons the sender is a claim.
    public var sender: Fingerprint?
    /// With `early`, the milliseconds by which the letter's time is ahead of the recipient's clock; otherwise 0.
    public var lead: UInt64

    init(_ reason: Reason, sender: Fingerprint? = nil, lead: UInt64 = 0) {
        self.reason = reason
        self.sender = sender
        self.lead = lead
    }
}
