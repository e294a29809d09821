import Crypto
import HexlistModel

@testable import HexlistEnvelope

/// A peer with its identity key, sealing key and card.
struct Peer {
    let signer: IdentitySigner
    let key: SealingPrivateKey
    let card: Card

    /// - Parameter number: determines the sealing key.
    init(_ number: UInt8) throws {
        signer = IdentitySigner(P256.Signing.PrivateKey())
        key = try SealingPrivateKey(seed: Array(repeating: number, count: 32))
        card = try Card(of: signer, sealingKey: key)
    }

    var fingerprint: Fingerprint { card.fingerprint }
    var opener: EnvelopeOpener { EnvelopeOpener(key: key, fingerprint: fingerprint) }

    func letter(_ frames: [[UInt8]] = [frame], to other: Peer, at time: UInt64 = start) throws -> Envelope {
        try Letter.seal(frames, at: time, boot: BootNonce(7), card: card, signer: signer, for: other.card)
    }

    /// The plaintext of a letter with one frame, for alterations.
    func plaintext(to other: Peer, payload: [UInt8] = Letter.payload([frame])) throws -> [UInt8] {
        let signed = Letter.signedBytes(from: fingerprint, to: other.fingerprint, at: start, boot: BootNonce(7), payload: payload[...])
        var bytes = card.bytes
        bytes += try signer.sign(signed)
        bytes.append(bigEndian: start)
        bytes.append(bigEndian: 7 as UInt64)
        bytes.append(bigEndian: UInt32(payload.count))
        bytes += payload
        bytes += Array(repeating: 0, count: Letter.plaintextSize(payload: payload.count) - bytes.count)
        return bytes
    }
}

let frame = Array(#"{"operationType":"Store"}"#.utf8)
/// Milliseconds since 1970.
let start: UInt64 = 1_800_000_000_000

/// The reason why an envelope is not opened; `nil` if it is.
func reason(_ envelope: [UInt8], for peer: Peer, now: UInt64 = start, trust: Trust = .trusted) -> EnvelopeFault.Reason? {
    do {
        _ = try peer.opener.open(envelope, now: Int64(now)) { _ in trust }
        return nil
    } catch {
        return error.reason
    }
}
