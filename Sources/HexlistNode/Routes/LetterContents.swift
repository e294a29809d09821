import HexlistEnvelope
import HexlistModel
import HexlistWire
import NIOCore

/// The decoded frames of one letter: hexes, and receipts for envelopes that this machine posted. Other frames are ignored.
struct LetterContents: Sendable {
    var hexes: [IncomingHex] = []
    var receipts: [(envelope: Envelope.ID, receipt: Receipt)] = []
    /// Bytes that the hexes take in memory.
    private(set) var weight = 0
    /// Frames that are permanently refused, by frame number.
    private var rejected: [Int64: HexRejection] = [:]
    /// The number of frames that are not JSON. `ProtocolLimits.strikes` of them make the letter malformed.
    private var undecodable = 0
    private let frameCount: Int

    /// Maximum number of frames; a letter with more is malformed. It bounds the memory for rejections. The longest letter has space for
    /// fewer hexes.
    static let frameLimit = 10_000

    /// Decodes the frames. Frame k of the letter, counted from 1, has number k.
    init(_ letter: Letter) {
        frameCount = letter.frames.count
        guard frameCount <= Self.frameLimit else {
            undecodable = ProtocolLimits.strikes
            return
        }
        var decoder = WrapperDecoder()
        for (index, frame) in letter.frames.enumerated() {
            let number = Int64(index + 1)
            switch decoder.decode(frame) {
            case .refused(let refusal):
                if refusal.isUndecodable { undecodable += 1 }
                guard !isMalformed else { return }
                if !refusal.code.isTemporary {
                    rejected[number] = HexRejection(sequence: number, code: refusal.code, message: refusal.message)
                }
            case .wrapper(let wrapper):
                switch wrapper.object {
                case .hex(let content):
                    guard let messageID = wrapper.messageID else { continue }
                    let hex = IncomingHex(
                        content: content, messageID: messageID, weight: content.weight(frame: frame.count), sequence: number)
                    hexes.append(hex)
                    weight += hex.weight
                case .receipt(let receipt):
                    if let envelope = receipt.envelope.flatMap({ Envelope.ID($0) }) { receipts.append((envelope, receipt)) }
                default: continue
                }
            }
        }
    }

    /// Whether too many frames are not JSON, so that the whole letter is ignored.
    var isMalformed: Bool { undecodable >= ProtocolLimits.strikes }

    /// Whether the letter gets a receipt: it has hexes, or frames that might have been hexes.
    var isReceiptOwed: Bool { !isMalformed && (!hexes.isEmpty || !rejected.isEmpty) }

    /// The receipts for the letter; `nil` if a hex was refused temporarily, so that the letter has to be processed again later.
    /// - Parameter results: the results of `hexes`, in their order.
    func receipts(of envelope: Envelope.ID, _ results: [DeliveryResult]) -> [Receipt]? {
        guard results.count == hexes.count, !results.contains(where: \.isTemporary) else { return nil }
        var rejected = self.rejected
        var statuses: [Int64: ReceiptStatus] = [:]
        for (hex, result) in zip(hexes, results) {
            guard let number = hex.sequence else { continue }
            switch result {
            case .stored, .delivered, .duplicate(of: .stored), .duplicate(of: .duplicate): statuses[number] = .stored
            case .held, .duplicate(of: .held): statuses[number] = .held
            case .refused(let code, let message, _): rejected[number] = HexRejection(sequence: number, code: code, message: message)
            case .undelivered: rejected[number] = HexRejection(sequence: number, code: .internal)
            }
        }
        // A receipt has one status for all its frames, so each change of the status starts another receipt, as on a session.
        var receipts: [Receipt] = []
        for number in 1...Int64(max(frameCount, 1)) {
            let rejection = rejected[number]
            let status = rejection == nil ? statuses[number] ?? .stored : nil
            if var last = receipts.popLast() {
                if status == nil || last.status == nil || last.status == status {
                    last.through = number
                    last.status = last.status ?? status
                    if let rejection { last.rejected.append(rejection) }
                    receipts.append(last)
                    continue
                }
                receipts.append(last)
            }
            receipts.append(
                Receipt(through: number, status: status, rejected: rejection.map { [$0] } ?? [], envelope: envelope.description))
        }
        return receipts
    }

    // MARK: Frames

    static func frame(_ hex: OutgoingHex) -> [UInt8] {
        frame { buffer in
            hex.body.withUnsafeBytes { WrapperEncoder.store(hexJSON: $0, messageID: hex.messageID, sequence: 1, into: &buffer) }
        }
    }

    static func frame(_ receipt: Receipt) -> [UInt8] { frame { WrapperEncoder.ack(receipt, into: &$0) } }

    /// Writes a frame, and returns it without its length prefix.
    private static func frame(_ write: (inout ByteBuffer) -> Void) -> [UInt8] {
        var buffer = ByteBuffer()
        write(&buffer)
        buffer.moveReaderIndex(forwardBy: 4)
        return Array(buffer.readableBytesView)
    }

    /// Divides items into letters, in order; each letter takes as many as fit. An item's frames stay together.
    /// - Parameter payloadBytes: maximum bytes of the frames of one letter, with their lengths.
    static func letters<Key>(
        _ items: [(key: Key, frames: [[UInt8]])], payloadBytes: Int = Letter.maximumPayloadBytes
    ) -> [[(key: Key, frames: [[UInt8]])]] {
        var letters: [[(key: Key, frames: [[UInt8]])]] = []
        var bytes = payloadBytes + 1
        for item in items {
            let size = item.frames.reduce(0) { $0 + 4 + $1.count }
            if bytes + size > payloadBytes {
                letters.append([])
                bytes = 0
            }
            letters[letters.count - 1].append(item)
            bytes += size
        }
        return letters
    }
}
