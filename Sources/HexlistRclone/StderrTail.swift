import HexlistModel
import Synchronization

/// The end of rclone's output, which has the reason why rclone ended. Also recognises the line with the port on which rclone listens.
struct StderrTail: Sendable {
    private static let lines = 8
    private static let lineBytes = 1_000
    private var rest: [UInt8] = []
    private var last: [String] = []
    private(set) var port: UInt16?

    /// Appends output.
    /// - Returns: the port, if these bytes complete the line that contains it.
    mutating func read(_ bytes: ArraySlice<UInt8>) -> UInt16? {
        var found: UInt16?
        for byte in bytes {
            guard byte == UInt8(ascii: "\n") else {
                if rest.count < Self.lineBytes { rest.append(byte) }
                continue
            }
            let line = String(decoding: rest, as: UTF8.self)
            rest.removeAll(keepingCapacity: true)
            if port == nil, let number = Self.port(in: line) { (port, found) = (number, number) }
            if last.count == Self.lines { last.removeFirst() }
            last.append(line)
        }
        return found
    }

    /// The last line that reports a failure, or else the last line. Without its time stamp.
    var reason: String {
        let line = last.last { $0.utf8.firstRange(of: "Failed".utf8) != nil } ?? last.last ?? ""
        // A line with a time stamp, such as: 2026/11/23 00:03:33 Failed to …
        let isTimed = line.utf8.count > 20 && line.utf8.first.map(ASCII.isDigit) == true
        return isTimed ? String(decoding: line.utf8.dropFirst(20), as: UTF8.self) : line
    }

    /// The reason why rclone did not start.
    var fault: RcloneFault {
        let text = last.joined(separator: "\n").utf8
        if text.firstRange(of: "not allowed to ask for password".utf8) != nil { return .encrypted }
        if text.firstRange(of: "password command".utf8) != nil || text.firstRange(of: "password-command".utf8) != nil
            || text.firstRange(of: "most likely wrong password".utf8) != nil
        {
            return .noPassword
        }
        return .notStarted(reason)
    }

    private static func port(in line: String) -> UInt16? {
        let mark = "Serving remote control on http://127.0.0.1:".utf8
        guard let range = line.utf8.firstRange(of: mark) else { return nil }
        let digits = line.utf8[range.upperBound...].prefix { ASCII.isDigit($0) }
        return UInt16(String(decoding: digits, as: UTF8.self))
    }
}

/// A thread-safe `StderrTail`.
final class SharedStderrTail: Sendable {
    private let words = Mutex(StderrTail())

    func read(_ bytes: ArraySlice<UInt8>) -> UInt16? { words.withLock { $0.read(bytes) } }
    var fault: RcloneFault { words.withLock { $0.fault } }
}
