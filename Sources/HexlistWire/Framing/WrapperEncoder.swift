public import HexlistModel
public import NIOCore

/// Encodes frames, each with its length, and appends them to a buffer.
public enum WrapperEncoder {
    /// Maximum bytes of the name in a Hello. Even if each byte is escaped with six bytes, the frame with a card has less than 8 KiB.
    private static let nameBytes = 768

    public static func hello(_ hello: Hello, into buffer: inout ByteBuffer) {
        var hello = hello
        hello.name = PeerName.cut(hello.name, bytes: nameBytes)
        frame(WrapperWriter.hello(hello), into: &buffer)
    }

    public static func ack(_ receipt: Receipt, into buffer: inout ByteBuffer) {
        frame(WrapperWriter.ack(receipt), into: &buffer)
    }

    public static func alert(message: String, sequence: Int64?, into buffer: inout ByteBuffer) {
        frame(WrapperWriter.message(.alert, message, sequence: sequence), into: &buffer)
    }

    /// - Parameter padding: number of bytes in an unknown member that makes the frame longer. Receivers ignore it (rule T1).
    public static func ping(message: String, sequence: Int64?, padding: Int = 0, into buffer: inout ByteBuffer) {
        frame(WrapperWriter.message(.ping, message, sequence: sequence, padding: padding), into: &buffer)
    }

    /// - Parameter message: the message of the Ping that is answered.
    public static func pong(message: String?, into buffer: inout ByteBuffer) {
        frame(WrapperWriter.message(.pong, message), into: &buffer)
    }

    /// - Parameter text: a text for the user.
    public static func bye(_ code: ByeCode, text: String, into buffer: inout ByteBuffer) {
        frame(WrapperWriter.message(.bye, "\(code.rawValue): \(text)"), into: &buffer)
    }

    public static func dialBack(_ request: DialBack, into buffer: inout ByteBuffer) {
        frame(WrapperWriter.message(.dialBack, request.message), into: &buffer)
    }

    public static func dialedBack(_ answer: DialBack.Response, into buffer: inout ByteBuffer) {
        frame(WrapperWriter.message(.dialedBack, answer.message), into: &buffer)
    }

    public static func fileDial(_ request: DialBack, into buffer: inout ByteBuffer) {
        frame(WrapperWriter.message(.fileDial, request.message), into: &buffer)
    }

    public static func listNews(into buffer: inout ByteBuffer) { frame(WrapperWriter.message(.listNews, nil), into: &buffer) }

    public static func pair(_ pairing: Pairing, into buffer: inout ByteBuffer) {
        frame(WrapperWriter.pair(pairing), into: &buffer)
    }

    /// - Parameter hexJSON: an encoded HexJM (`HexEncoder`).
    public static func store(hexJSON: [UInt8], messageID: MessageID, sequence: Int64, into buffer: inout ByteBuffer) {
        hexJSON.withUnsafeBytes { store(hexJSON: $0, messageID: messageID, sequence: sequence, into: &buffer) }
    }

    /// - Parameter hexJSON: an encoded HexJM (`HexEncoder`).
    public static func store(hexJSON: UnsafeRawBufferPointer, messageID: MessageID, sequence: Int64, into buffer: inout ByteBuffer) {
        let head = WrapperWriter.store(messageID: messageID, sequence: sequence).bytes
        buffer.writeInteger(UInt32(clamping: head.count + hexJSON.count + 1))
        buffer.writeBytes(head)
        buffer.writeBytes(hexJSON)
        buffer.writeInteger(UInt8(ascii: "}"))
    }

    private static func frame(_ body: [UInt8], into buffer: inout ByteBuffer) {
        buffer.writeInteger(UInt32(clamping: body.count))
        buffer.writeBytes(body)
    }
}
