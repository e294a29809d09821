import Crypto

// libFuzzer target: envelopes from a mailbox, that is cards, file names, envelopes, and letters behind the encryption. Must never trap.
// Accepted values are unchanged by writing and reading, and a letter is opened only if it was signed.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzEnvelope(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    switch input.byte() % 5 {
    case 0: readCard(&input)
    case 1: readTexts(String(decoding: input.all(), as: UTF8.self))
    case 2: openEnvelope(&input)
    case 3: openAltered(&input)
    default: openSigned(&input)
    }
    return 0
}

/// The recipient of all envelopes, and their sender.
private struct FuzzPeer {
    static let shared: FuzzPeer = {
        do { return try FuzzPeer() } catch { fatalError("\(error)") }
    }()

    let signer: IdentitySigner
    let card: Card
    let opener: EnvelopeOpener

    init() throws {
        signer = IdentitySigner(try P256.Signing.PrivateKey(rawRepresentation: Array(repeating: 1, count: 32)))
        let key = try SealingPrivateKey(seed: Array(repeating: 2, count: 32))
        card = try Card(of: signer, sealingKey: key)
        opener = EnvelopeOpener(key: key, fingerprint: card.fingerprint)
    }

    /// The plaintext of a letter to the peer itself.
    func plaintext(signature: [UInt8], time: UInt64, boot: UInt64, length: Int, payload: [UInt8]) -> [UInt8] {
        var bytes = card.bytes + signature
        bytes.append(bigEndian: time)
        bytes.append(bigEndian: boot)
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: length))
        bytes += payload
        bytes += Array(repeating: 0, count: max(0, Letter.plaintextSize(payload: payload.count) - bytes.count))
        return bytes
    }
}

private let present: Int64 = 1_800_000_000_000

/// Reads a valid card of which the input has replaced a part.
private func readCard(_ input: inout FuzzInput) {
    var bytes = FuzzPeer.shared.card.bytes
    let place = Int(input.word())
    let part = input.all()
    if place >= bytes.count { bytes = part } else { bytes.replaceSubrange(place..<min(place + part.count, bytes.count), with: part) }
    guard let card = Card(bytes: bytes) else { return }
    guard card.bytes == bytes, Card(text: card.text) == card else { fatalError("a card is not read as it was written") }
    if bytes != FuzzPeer.shared.card.bytes, card.isSignatureValid { fatalError("an altered card is valid") }
}

private func readTexts(_ text: String) {
    if let card = Card(text: text), card.text != text { fatalError("a card has two texts") }
    if let card = Card(text: "hexlist-card-1:" + text), card.text != "hexlist-card-1:" + text { fatalError("a card has two texts") }
    if let name = EnvelopeFileName(text) {
        guard name.description == text, !text.contains("/"), EnvelopeFileName(postedAt: name.postedAt, id: name.id) == name else {
            fatalError("a file name is not read as it was written")
        }
    }
}

private func openEnvelope(_ input: inout FuzzInput) {
    let card = FuzzPeer.shared.card
    var bytes = Array("HXE1".utf8) + card.fingerprint.peerID.uuid.bytes + SealingPrivateKey.hash(of: card.sealingKey)
    if input.flag() { bytes += input.all() } else { bytes = input.all() }
    bytes += Array(repeating: 0, count: max(0, Envelope.sizes.lowerBound - bytes.count))
    guard Envelope(bytes: bytes) == nil || Envelope(bytes: bytes)?.bytes == bytes else { fatalError("another envelope") }
    if (try? FuzzPeer.shared.opener.open(bytes, now: present) { _ in .trusted }) != nil { fatalError("a forged envelope was opened") }
}

/// A letter with the peer's card and everything else from the input.
private func openAltered(_ input: inout FuzzInput) {
    let signature = input.bytes(64)
    let time = UInt64(input.word()) << 32 | UInt64(input.word())
    let length = Int(input.word()) << 16 | Int(input.word())
    let plaintext = FuzzPeer.shared.plaintext(
        signature: signature + Array(repeating: 0, count: 64 - signature.count), time: time, boot: 1, length: length, payload: input.all())
    do {
        _ = try FuzzPeer.shared.opener.letter(plaintext[...], now: present) { _ in .trusted }
        fatalError("a forged letter was opened")
    } catch {
        guard error.reason == .forged || error.reason == .malformed else { fatalError("\(error)") }
    }
}

/// A correctly signed letter with any payload.
private func openSigned(_ input: inout FuzzInput) {
    let peer = FuzzPeer.shared
    let payload = input.all()
    let time = UInt64(present)
    let own = peer.card.fingerprint
    let signed = Letter.signedBytes(from: own, to: own, at: time, boot: BootNonce(1), payload: payload[...])
    guard let signature = try? peer.signer.sign(signed) else { fatalError("no signature") }
    let plaintext = peer.plaintext(signature: signature, time: time, boot: 1, length: payload.count, payload: payload)
    do {
        let letter = try peer.opener.letter(plaintext[...], now: present) { _ in .stranger }
        guard Letter.payload(letter.frames) == payload, letter.signedAt == time, letter.sender == own else {
            fatalError("a letter is not read as it was written")
        }
    } catch {
        guard error.reason == .malformed, Letter.frames(of: payload[...]) == nil else { fatalError("\(error)") }
    }
}
