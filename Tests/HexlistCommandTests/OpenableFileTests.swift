import Foundation
import HexlistSystem
import TestSupport
import Testing

@testable import hexlist

@Suite struct OpenableFileTests {
    private static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0]

    @Test(arguments: [
        ("a.png", png, true), ("a.PNG", png, true), ("a.txt", Array("hello\nGrüße\n".utf8), true), ("notes.md", Array("# a\n".utf8), true),
        ("empty.txt", [], true), ("talk.pdf", Array("%PDF-1.7\n".utf8), true), ("a.mp3", Array("ID3\u{3}".utf8), true),
        ("a.mp4", [0, 0, 0, 24] + Array("ftypisom".utf8), true), ("a.webm", [0x1A, 0x45, 0xDF, 0xA3], true),
        // The name disagrees with the content, or has no suffix.
        ("a.pdf", png, false), ("a.png", Array("%PDF-1.7".utf8), false), ("png", png, false), ("a", Array("hello".utf8), false),
        ("a.txt", png, false), ("a.txt", [0x68, 0, 0x69], false), ("a.txt", [0xFF, 0xFE, 0x68, 0], false), ("a.png.exe", png, false),
        // Types that programs execute or render.
        ("a.csv", Array("=1+1,2".utf8), false), ("a.html", Array("<p>".utf8), false), ("a.svg", Array("<svg/>".utf8), false),
        ("a.sh", Array("ls".utf8), false),
        ("a.desktop", Array("[Desktop Entry]\nExec=x".utf8), false), ("a.txt", Array("#!/bin/sh\n".utf8), false),
        ("a.txt", Array("\u{FEFF} \n<html>".utf8), false), ("a.txt", Array("x\n<SCRIPT src=y>".utf8), false),
        ("a.txt", Array("[Desktop Entry]\nExec=x".utf8), false), ("a.txt", Array("a\u{1B}[31m".utf8), false),
    ]) func whatIsHandedToAProgram(name: String, bytes: [UInt8], isOpenable: Bool) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "hexlist-open-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: name).path
        try Data(bytes).write(to: URL(filePath: path))
        #expect(try OpenableFile.isOpenable(path) == isOpenable)
    }

    @Test func aLongTextMayEndInACharacter() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "hexlist-open-\(UUID().uuidString).txt").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        for shift in 0..<3 {
            try Data((String(repeating: "a", count: shift) + String(repeating: "文", count: 40_000)).utf8).write(to: URL(filePath: path))
            #expect(try OpenableFile.isOpenable(path))
        }
    }
}
