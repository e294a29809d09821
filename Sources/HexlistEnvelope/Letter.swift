public import HexlistModel

/// The content of an envelope: frames of a trusted peer, as on a session, with the peer's card and signature.
public struct Letter: Sendable, Equatable {
    /// Bytes before the payload: card, signature, time, boot nonce, length.
    static let headBytes = Card.byteCount + 64 + 8 + 8 + 4
    /// Sizes of the padded plaintext in bytes.
    static let plaintextSizes = 4_096...983_040
    /// Maximum bytes of all frames of a letter, with the four bytes of each frame's length.
    public static let maximumPayloadBytes = plaintextSizes.upperBound - headBytes

    public var card: Card
    /// Milliseconds since 1970 by the sender's clock.
    public var signedAt: UInt64
    /// The boot nonce of the sender's daemon process that signed the letter.
    public var boot: BootNonce
    /// The bodies of the frames. The receipt refers to a frame by its position, counted from 1.
    public var frames: [[UInt8]]

    public var sender: Fingerprint { card.fingerprint }

    /// Writes, signs and seals a letter.
    /// - Parameters:
    ///   - frames: the bodies of the frames; with their length prefixes at most `maximumPayloadBytes` together.
    ///   - card: the sender's own card.
    ///   - recipient: the recipient's card. The caller has checked its signature, and that its key is trusted.
    /// - Throws: `LetterTooLong`, or an error of the signer.
    public static func seal(
        _ frames: [[UInt8]], at time: UInt64, boot: BootNonce, card: Card, signer: IdentitySigner, for recipient: Card
    ) throws -> Envelope {
        // A long payload is copied as rarely as possible: new memory for it costs more time than its encryption.
        let signedHead = Self.signedHead(from: card.fingerprint, to: recipient.fingerprint, at: time, boot: boot)
        let signed = Self.payload(frames, after: signedHead)
        let payload = signed[signedHead.count...]
        guard payload.count <= maximumPayloadBytes else { throw LetterTooLong() }
        var plaintext = card.bytes
        let size = plaintextSize(payload: payload.count)
        plaintext.reserveCapacity(size)
        plaintext += try signer.sign(signed)
        plaintext.append(bigEndian: time)
        plaintext.append(bigEndian: boot.value)
        plaintext.append(bigEndian: UInt32(payload.count))
        plaintext += payload
        plaintext += repeatElement(0, count: size - plaintext.count)
        return try Envelope(sealing: plaintext, for: recipient)
    }

    /// The size of the plaintext of a letter with padding, in bytes.
    /// - Parameter payload: bytes of all frames with their length prefixes.
    static func plaintextSize(payload: Int) -> Int {
        max(plaintextSizes.lowerBound, Padme.paddedLength(of: headBytes + payload))
    }

    /// Maximum bytes of all frames of a letter, with the four bytes of each frame's length, if the size of envelopes is limited.
    /// - Parameter bytes: the maximum size of the envelope. The upper bound of `Envelope.sizes` applies as well.
    public static func maximumPayloadBytes(inEnvelopeOf bytes: Int) -> Int {
        var (fitting, tooLong) = (0, maximumPayloadBytes + 1)
        // The padded size grows with the payload, so the limit is found by bisection.
        while tooLong - fitting > 1 {
            let middle = (fitting + tooLong) / 2
            if plaintextSize(payload: middle) + Envelope.overhead <= bytes { fitting = middle } else { tooLong = middle }
        }
        return fitting
    }

    /// The frames, each after its length.
    /// - Parameter head: bytes before the first frame.
    static func payload(_ frames: [[UInt8]], after head: [UInt8] = []) -> [UInt8] {
        var bytes = head
        bytes.reserveCapacity(frames.reduce(head.count) { $0 + 4 + $1.count })
        for frame in frames {
            bytes.append(bigEndian: UInt32(frame.count))
            bytes += frame
        }
        return bytes
    }

    /// Splits a payload into the bodies of its frames; `nil` if a length is 0 or leads beyond the end.
    static func frames(of payload: ArraySlice<UInt8>) -> [[UInt8]]? {
        var frames: [[UInt8]] = []
        var rest = payload
        while !rest.isEmpty {
            guard rest.count > 4 else { return nil }
            let length = Int(rest.prefix(4).bigEndian(as: UInt32.self))
            rest = rest.dropFirst(4)
            guard length >= 1, length <= rest.count else { return nil }
            frames.append(Array(rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        return frames
    }

    /// The bytes that a letter's signature covers. They include the recipient, so the recipient cannot pass the letter on to another peer
    /// as addressed to that peer.
    static func signedBytes(
        from sender: Fingerprint, to recipient: Fingerprint, at time: UInt64, boot: BootNonce, payload: ArraySlice<UInt8>
    ) -> [UInt8] {
        signedHead(from: sender, to: recipient, at: time, boot: boot) + payload
    }

    /// The bytes before the payload in `signedBytes`.
    private static func signedHead(from sender: Fingerprint, to recipient: Fingerprint, at time: UInt64, boot: BootNonce) -> [UInt8] {
        var bytes = Array("hexlist-letter-1".utf8) + sender.bytes + recipient.bytes
        bytes.append(bigEndian: time)
        bytes.append(bigEndian: boot.value)
        return bytes
    }
}

/// The frames do not fit into one letter.
public struct LetterTooLong: Error {}
