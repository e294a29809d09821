import HexlistModel
import Testing

@testable import HexlistLocalSend

private let digits = String(repeating: "0A", count: 32)

@Suite struct MessageTests {
    @Test("an announcement of LocalSend 1.18") func announcement() throws {
        let info = try DeviceInfo(
            parsing: Array(
                """
                {"alias":"Cool Mango","version":"2.2","deviceModel":"Pixel 9","deviceType":"mobile","fingerprint":"\(digits)",
                "port":53317,"protocol":"https","download":false,"announce":true,"new":{"member":1}}
                """.utf8))
        #expect(info.alias == "Cool Mango" && info.deviceModel == "Pixel 9" && info.deviceType == "mobile")
        #expect(info.port == 53_317 && info.scheme == .https && info.isAnnouncement && info.hexlist == nil)
        #expect(info.fingerprint?.bytes == [UInt8](repeating: 10, count: 32))
    }

    @Test(
        "a fingerprint is 64 digits of either case",
        arguments: [
            (digits, true), (digits.lowercased(), true), (String(digits.dropLast()), false), (digits + "0", false),
            ("0a:" + digits, false), ("my fingerprint", false), ("", false),
        ]) func fingerprints(text: String, isOne: Bool)
    {
        #expect((Fingerprint(localSend: text) != nil) == isOne)
        if isOne { #expect(Fingerprint(localSend: text)?.localSendText == digits) }
    }

    @Test("encoded messages are decoded unchanged") func roundTrip() throws {
        let own = DeviceInfo(
            alias: "ada \u{1F4E6}", deviceModel: "Hexlist", deviceType: "desktop", fingerprint: Fingerprint(localSend: digits),
            port: 53_317,
            scheme: .https, hexlist: PeerID("A91D2E40-0000-8000-8000-000000000001"))
        let announced = try DeviceInfo(parsing: own.announcement)
        #expect(announced.isAnnouncement && announced.hexlist == own.hexlist && announced.alias == own.alias && announced.port == own.port)
        let registered = try DeviceInfo(parsing: own.registration)
        #expect(!registered.isAnnouncement && registered.hexlist == nil && registered.fingerprint == own.fingerprint)
        let file = DeviceFile(
            id: "1", fileName: "a/b.txt", size: 3, fileType: "text/plain", sha256: [UInt8](repeating: 7, count: 32), preview: "abc",
            modified: "2026-11-26T00:00:00Z")
        let request = try PrepareUpload(parsing: PrepareUpload(info: own, files: [file]).bytes)
        #expect(request.text == "abc" && request.totalBytes == 3)
        #expect(request.files.first?.sha256 == file.sha256 && request.files.first?.modified == file.modified)
    }

    @Test("invalid descriptions", arguments: ["", "[]", "null", "{}", "{\"alias\":1}", "{\"alias\":\"a\"", "alias"])
    func invalid(text: String) { #expect(throws: LocalSendFault.self) { try DeviceInfo(parsing: Array(text.utf8)) } }

    @Test("claims out of range are left out") func ranges() throws {
        for port in ["0", "-1", "65536", "99999999999999999999", "\"80\"", "1.5"] {
            #expect(try DeviceInfo(parsing: Array("{\"alias\":\"a\",\"port\":\(port)}".utf8)).port == nil)
        }
        let long = String(repeating: "ä", count: 1_000)
        #expect(try DeviceInfo(parsing: Array("{\"alias\":\"\(long)\"}".utf8)).alias.utf8.count == LocalSendLimits.aliasBytes)
        let padding = String(repeating: " ", count: LocalSendLimits.infoBytes)
        #expect(throws: LocalSendFault.tooLarge("the description of the device")) {
            try DeviceInfo(parsing: Array("{\"alias\":\"a\"\(padding)}".utf8))
        }
    }

    private func request(_ files: String) -> [UInt8] { Array("{\"info\":{\"alias\":\"a\"},\"files\":\(files)}".utf8) }

    @Test(
        "invalid requests",
        arguments: [
            "{}", "[]", "{\"1\":{\"id\":\"2\",\"fileName\":\"a\",\"size\":1}}", "{\"1\":{\"id\":\"1\",\"fileName\":\"a\",\"size\":-1}}",
            "{\"1\":{\"id\":\"1\",\"fileName\":\"a\"}}", "{\"\":{\"id\":\"\",\"fileName\":\"a\",\"size\":1}}",
            "{\"1\":{\"id\":\"1\",\"fileName\":\"a\",\"size\":1},\"1\":{\"id\":\"1\",\"fileName\":\"b\",\"size\":1}}",
        ]) func invalidRequests(files: String)
    {
        #expect { try PrepareUpload(parsing: request(files)) } throws: { error in
            if case LocalSendFault.invalid = error { true } else { false }
        }
    }

    @Test("bounds of a request") func bounds() throws {
        let one = { (id: Int) in "\"\(id)\":{\"id\":\"\(id)\",\"fileName\":\"a\",\"size\":1}" }
        let most = "{" + (1...LocalSendLimits.files).map(one).joined(separator: ",") + "}"
        #expect(try PrepareUpload(parsing: request(most)).files.count == LocalSendLimits.files)
        let more = "{" + (0...LocalSendLimits.files).map(one).joined(separator: ",") + "}"
        let preview = String(repeating: "x", count: LocalSendLimits.previewBytes + 1)
        let large = [
            request(more), request("{\"1\":{\"id\":\"1\",\"fileName\":\"a\",\"size\":1,\"preview\":\"\(preview)\"}}"),
            request("{\"1\":{\"id\":\"1\",\"fileName\":\"\(preview)\",\"size\":1}}"),
            request("{}") + [UInt8](repeating: 32, count: LocalSendLimits.prepareBytes),
        ]
        for bytes in large {
            #expect { try PrepareUpload(parsing: bytes) } throws: { error in
                if case LocalSendFault.tooLarge = error { true } else { false }
            }
        }
        let huge = "{\"1\":{\"id\":\"1\",\"fileName\":\"a\",\"size\":\(Int64.max)},\"2\":{\"id\":\"2\",\"fileName\":\"a\",\"size\":1}}"
        #expect(try PrepareUpload(parsing: request(huge)).totalBytes == .max)
    }

    @Test(
        "a message is one text with a preview",
        arguments: [
            ("text", "\"preview\":\"hi\"", "hi"), ("text/plain", "\"preview\":\"hi\"", "hi"), ("TEXT/html", "\"preview\":\"hi\"", "hi"),
            ("text/plain", "\"preview\":null", nil), ("image/png", "\"preview\":\"hi\"", nil), ("texture", "\"preview\":\"hi\"", nil),
        ] as [(String, String, String?)]) func messages(type: String, preview: String, text: String?) throws
    {
        let files = "{\"1\":{\"id\":\"1\",\"fileName\":\"a\",\"size\":2,\"fileType\":\"\(type)\",\(preview)}}"
        #expect(try PrepareUpload(parsing: request(files)).text == text)
    }

    @Test(
        "names of files stay inside their folder",
        arguments: [
            ("a.txt", ["a.txt"]), ("photos/a.txt", ["photos", "a.txt"]), ("../../etc/passwd", ["etc", "passwd"]),
            ("/etc/passwd", ["etc", "passwd"]), ("..", ["file"]), ("", ["file"]), ("..\\..\\a", ["a"]), (".bashrc", ["bashrc"]),
            ("a/./b/../c", ["a", "b", "c"]), ("-rf", ["rf"]), ("a\u{0}b", ["a_b"]),
            ("1/2/3/4/5/6/7/8/9/10/f", ["1", "2", "3", "4", "5", "6", "7", "f"]),
        ]) func paths(fileName: String, path: [String])
    {
        let file = DeviceFile(id: "1", fileName: fileName, size: 0, fileType: "")
        #expect(file.path.map(\.description) == path)
    }
}
