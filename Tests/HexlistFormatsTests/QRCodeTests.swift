import Glibc
import TestSupport
import Testing

@testable import HexlistFormats

@Suite("QR codes", .timeLimit(.minutes(5))) struct QRCodeTests {
    /// The longest text of each version with level M, and of versions 9 and 10 with level L (ISO/IEC 18004, table 7).
    @Test(arguments: [
        (1, 21), (14, 21), (15, 25), (26, 25), (27, 29), (42, 29), (43, 33), (62, 33), (63, 37), (84, 37), (85, 41), (106, 41), (107, 45),
        (122, 45), (123, 49), (152, 49), (153, 53), (180, 53), (181, 57), (213, 57), (214, 53), (230, 53), (231, 57), (271, 57),
    ])
    func sizes(bytes: Int, modules: Int) throws {
        #expect(try #require(QRCode(Self.text(bytes))).size == modules)
    }

    @Test func `a text that is too long has none`() {
        #expect(QRCode(Self.text(272)) == nil)
        #expect(QRCode(String(repeating: "é", count: 136)) == nil)
    }

    @Test func `error correction of the standard's example`() {
        // ISO/IEC 18004, annex I: "01234567" in version 1, level M.
        let data: [UInt8] = [
            0x10, 0x20, 0x0C, 0x56, 0x61, 0x80, 0xEC, 0x11, 0xEC, 0x11, 0xEC, 0x11, 0xEC, 0x11, 0xEC, 0x11,
        ]
        #expect(
            ReedSolomon.remainder(of: data, ReedSolomon.generator(degree: 10)) == [
                0xA5, 0x24, 0xD4, 0xC1, 0xED, 0x36, 0xC7, 0x87, 0x2C, 0x55,
            ])
    }

    @Test(
        "a scanner reads each version", .enabled(if: access("/usr/bin/zbarimg", X_OK) == 0, "needs zbarimg (apt install zbar-tools)"),
        .offPool,
        arguments: [1, 14, 26, 40, 62, 84, 106, 122, 150, 180, 213, 230, 271])
    func scanned(bytes: Int) async throws {
        try await scan(Self.text(bytes))
    }

    @Test(
        "a scanner reads text of other scripts",
        .enabled(if: access("/usr/bin/zbarimg", X_OK) == 0, "needs zbarimg (apt install zbar-tools)"), .offPool)
    func scripts() async throws {
        try await scan("hexlist:peer?name=Größe 中文 👩‍👩‍👧&host=[fe80::1]:24391")
    }

    @Test func `text lines hold two rows of modules and the quiet zone`() throws {
        let code = try #require(QRCode("x"))
        let lines = code.textLines()
        #expect(lines.count == 13 && lines.allSatisfy { $0.count == 25 })
        #expect(lines[0].allSatisfy { $0 == " " })
        #expect(lines[1].hasPrefix("  █▀▀▀▀▀█ "))
        #expect(code.textLines(inverted: true)[0].allSatisfy { $0 == "█" })
    }

    /// Base64 digits, different for each length.
    private static func text(_ bytes: Int) -> String {
        var random = SeededGenerator(seed: UInt64(bytes))
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        return String((0..<bytes).map { _ in digits.randomElement(using: &random) ?? "A" })
    }

    /// Draws the code as an image with four pixels a module, and compares what zbarimg reads.
    private func scan(_ text: String) async throws {
        let code = try #require(QRCode(text))
        let side = code.size + 8
        var image = "P2\n\(side * 4) \(side * 4)\n1\n"
        for y in 0..<side * 4 {
            for x in 0..<side * 4 { image += code.isDark(x: x / 4 - 4, y: y / 4 - 4) ? "0 " : "1 " }
            image += "\n"
        }
        try await TemporaryFolder.with { folder in
            try folder.write(image, to: "code.pgm")
            let answer = try ChildProcess.answer(
                "/usr/bin/zbarimg", ["--nodbus", "--quiet", "--raw", "\(folder.path)/code.pgm"], environment: ["PATH": "/usr/bin:/bin"])
            #expect(answer.status == 0)
            #expect(answer.said == text + "\n")
        }
    }
}
