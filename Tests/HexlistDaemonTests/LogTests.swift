import HexlistAPI
import HexlistJSON
import HexlistModel
import HostileTexts
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

    @Test("text: one line, values after the message, cleaned and quoted if needed")
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

    @Test("json: one object per line")
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

    @Test("a record is one printable line, whatever its values contain", arguments: [Settings.Log.Format.text, .json])
    func hostile(format: Settings.Log.Format) throws {
        for text in HostileTexts.inContext {
            let lines = Lines()
            logger(format, lines).notice(
                "\(text)", metadata: ["peer.name": "\(text)", "nested": ["a": ["\(text)"]], "more": .array(["\(text)"])])
            let bytes = lines.bytes.withLock { $0 }
            #expect(bytes.last == UInt8(ascii: "\n"))
            #expect(
                String(decoding: bytes.dropLast(), as: UTF8.self).unicodeScalars.allSatisfy(TerminalText.isShown),
                "\(text.debugDescription)")
            #expect(bytes.count < 40_000)
            switch format {
            case .json:
                let record = try JSONObject(JSONValue(parsing: Array(bytes.dropLast())))
                #expect(record.names == ["at", "level", "logger", "message", "more", "nested", "peer.name"])
            case .text: #expect(bytes.starts(with: Array("1970-01-01T00:00:00.009Z notice ".utf8)))
            }
        }
    }

    @Test("messages and names are bounded too")
    func longMessage() {
        let lines = Lines()
        logger(.text, lines).error(
            "\(String(repeating: "x", count: 1 << 20))", metadata: ["\(String(repeating: "k", count: 1 << 20))": "v"])
        #expect(lines.text.utf8.count < 5_000)
    }
}
