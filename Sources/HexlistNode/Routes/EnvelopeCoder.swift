import HexlistEnvelope
import HexlistModel
import HexlistTransport

/// Seals and opens envelopes with this machine's identity. Sealing and opening take about 0.3 ms and run on the file threads.
struct EnvelopeCoder: Sendable {
    private let boot: BootNonce
    private let signer: IdentitySigner
    private let opener: EnvelopeOpener
    /// This machine's card.
    let card: Card
    /// The card as it is sent in a Hello.
    let cardText: String

    /// - Parameter boot: the nonce of this daemon process, by which peers recognise two machines with one identity.
    /// - Throws: an error of the cryptographic library; not expected for a valid identity.
    init(identity: Identity, boot: BootNonce) throws {
        self.boot = boot
        signer = IdentitySigner(keyInfo: identity.keyInfo, sign: identity.signature(of:))
        let key = try SealingPrivateKey(seed: identity.secret(for: SealingPrivateKey.purpose))
        card = try Card(of: signer, sealingKey: key)
        cardText = card.base64
        opener = EnvelopeOpener(key: key, fingerprint: identity.fingerprint)
    }

    var own: PeerID { card.fingerprint.peerID }

    /// Seals a letter with these frames for one recipient.
    /// - Parameters:
    ///   - frames: the bodies of the frames. With 4 bytes each for their lengths, they take at most `Letter.maximumPayloadBytes`.
    ///   - recipient: the card of a trusted key, whose signature was checked.
    /// - Throws: `LetterTooLong`.
    func seal(_ frames: [[UInt8]], for recipient: Card, at now: Int64) throws -> Envelope {
        try Letter.seal(frames, at: UInt64(clamping: now), boot: boot, card: card, signer: signer, for: recipient)
    }

    func open(_ bytes: [UInt8], now: Int64, trust: (Fingerprint) -> Trust) throws(EnvelopeFault) -> Letter {
        try opener.open(bytes, now: now, trust: trust)
    }
}
