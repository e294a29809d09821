import HexlistAPI
import Logging
import Synchronization
import Testing

@testable import HexlistDaemon

@Suite("Logging")
struct LogTests {
    private final class Lines: Sendable {
        let bytes = Mutex<[UInt8]>([])
        var text: String { bytes.withLock { String(decoding: $0, as: UTF8.self) } }
    }

    private func logger(_ format: Settings.Log.Format, _ lines: Lines) -> Logger {
        Logger(label: "test") { label in
            StderrLogHandler(
                label: label, settings: Settings.Log(level: .info, format: format), write: { line in lines.bytes.withLock { $0 += line } },
                now: { Timestamp(milliseconds: 9) })
        }
    }

    @Test("text: one line, values behind the message, cleaned and quoted where they need it")
    func text() {
        let lines = Lines()
        var logger = logger(.text, lines)
        logger[metadataKey: "z"] = "1"
        logger.info("frame received", metadata: ["peer.name": "Ada \u{1B}[31m\n\"x\"", "a": "", "frame.bytes": "7"])
        logger.debug("not shown")
        #expect(
            lines.text
                == "1970-01-01T00:00:00.009Z info frame received a=\"\" frame.bytes=7 peer.name=\"Ada \u{FFFD}[31m \\\"x\\\"\" z=1\n")
    }

    @Test("json: one object a line")
    func json() {
        let lines = Lines()
        logger(.json, lines).warning("stopping", metadata: ["error": "a\u{202E}b"])
        #expect(
            lines.text == #"{"at":"1970-01-01T00:00:00.009Z","level":"warning","logger":"test","message":"stopping","error":"a\#u{FFFD}b"}"#
                + "\n")
    }

    @Test("a value of any length is bounded")
    func long() {
        let lines = Lines()
        logger(.text, lines).error("x", metadata: ["v": "\(String(repeating: "é", count: 100_000))"])
        #expect(lines.text.utf8.count < 2_200)
    }
}
