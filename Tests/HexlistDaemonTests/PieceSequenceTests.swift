import Foundation
import HexlistFiles
import HexlistModel
import NIOCore
import TestSupport
import Testing

@testable import HexlistDaemon

@Suite("Pieces of a file", .timeLimit(.minutes(5))) struct PieceSequenceTests {
    private func accepted(_ beginning: PieceSequence.Beginning) throws -> PieceSequence.Attempt {
        guard case .accepted(let attempt) = beginning else {
            Issue.record("\(beginning)")
            throw CancellationError()
        }
        return attempt
    }

    @Test(
        "a piece has 1 byte to the rest of the file",
        arguments: [(1, true), (10 << 20, true), (0, false), (-1, false), ((10 << 20) + 1, false), (.max, false)] as [(Int64, Bool)])
    func lengths(_ length: Int64, _ isAccepted: Bool) throws {
        var pieces = PieceSequence(size: 10 << 20)
        if isAccepted {
            _ = try accepted(pieces.begin(at: 0, length: length))
        } else {
            #expect(pieces.begin(at: 0, length: length) == .wrongLength)
        }
    }

    @Test("a gap, a repetition and bytes beyond the end are refused") func positions() throws {
        var pieces = PieceSequence(size: 5)
        let first = try accepted(pieces.begin(at: 0, length: 3))
        #expect(pieces.receive(3, of: first) && pieces.at == 3)
        for offset in [0, 2, 4, -1, .max] as [Int64] { #expect(pieces.begin(at: offset, length: 1) == .elsewhere(at: 3)) }
        #expect(pieces.begin(at: 3, length: 3) == .wrongLength)
        let second = try accepted(pieces.begin(at: 3, length: 1))
        #expect(pieces.receive(2, of: second) == false)
        #expect(pieces.receive(1, of: second) && !pieces.isComplete)
        #expect(pieces.receive(1, of: second) == false)
        let third = try accepted(pieces.begin(at: 4, length: 1))
        #expect(pieces.receive(1, of: third) && pieces.at == 5 && pieces.isComplete)
        #expect(pieces.begin(at: 5, length: 1) == .wrongLength)
    }

    @Test("bytes that arrived count, and a later attempt replaces an earlier one") func attempts() throws {
        var pieces = PieceSequence(size: 8)
        let cut = try accepted(pieces.begin(at: 0, length: 8))
        #expect(pieces.receive(5, of: cut) && pieces.at == 5)
        let again = try accepted(pieces.begin(at: 5, length: 3))
        #expect(!pieces.receive(1, of: cut) && pieces.at == 5)
        #expect(pieces.receive(3, of: again) && pieces.isComplete)
    }

    @Test("after an interruption late bytes are refused, and the next piece begins after the written bytes")
    func interruption() throws {
        var pieces = PieceSequence(size: 8)
        let failed = try accepted(pieces.begin(at: 0, length: 8))
        #expect(pieces.receive(5, of: failed) && pieces.at == 5)
        pieces.interrupt(at: 2)
        #expect(!pieces.receive(1, of: failed) && pieces.at == 2)
        #expect(pieces.begin(at: 5, length: 3) == .elsewhere(at: 2))
        let again = try accepted(pieces.begin(at: 2, length: 6))
        #expect(pieces.receive(6, of: again) && pieces.isComplete)
    }

    @Test("a request that was sent before an attempt does not end it") func lateInterruption() throws {
        var pieces = PieceSequence(size: 8)
        let attempt = try accepted(pieces.begin(at: 0, length: 8, sentAt: 20))
        pieces.interrupt(sentAt: 19)
        let goesOn = pieces.receive(5, of: attempt)
        pieces.interrupt(sentAt: 20)
        let isLate = !pieces.receive(1, of: attempt)
        #expect(goesOn && isLate && pieces.at == 5)
        _ = try accepted(pieces.begin(at: 5, length: 3))
    }

    @Test("the upload of a file continues after the bytes of a cut piece") func file() async throws {
        try await TemporaryFolder.with { folder in
            let guests = ArrivalFolder(path: "\(folder.path)/guests")
            let part = try GuestUpload(session: "a", size: 9, in: guests, modified: 0, minimumFree: 0)
            let first = try accepted(part.begin(at: 0, length: 3))
            #expect(try part.append(ByteBuffer(string: "abc"), of: first) && part.at == 3)
            let cut = try accepted(part.begin(at: 3, length: 6))
            #expect(try part.append(ByteBuffer(string: "de"), of: cut) && part.at == 5)
            #expect(try part.interrupt() == 5)
            #expect(try !part.append(ByteBuffer(string: "XX"), of: cut) && part.at == 5, "late bytes")
            let last = try accepted(part.begin(at: 5, length: 4))
            #expect(try !part.append(ByteBuffer(string: "fghiX"), of: last) && part.at == 5, "too many")
            #expect(try part.append(ByteBuffer(string: "fg"), of: last) && part.finished == nil)
            #expect(try part.append(ByteBuffer(string: "hi"), of: last) && part.at == 9)
            #expect(try part.interrupt() == 9)
            let finished = try #require(part.finished)
            #expect(try String(contentsOfFile: guests.path(of: "a", name: finished.name), encoding: .utf8) == "abcdefghi")
            let sha256 = "19cc02f26df43cc571bc9ed7b0c4d29224a3ec229529221725ef76d021c8326f"
            #expect(Hexadecimal.encode(finished.sha256).lowercased() == sha256)
            #expect(try GuestUpload(session: "b", size: 0, in: guests, modified: 0, minimumFree: 0).finished != nil)
            #expect(throws: FileFault.diskFull) { try GuestUpload(session: "c", size: 1, in: guests, modified: 0, minimumFree: .max) }
            part.discard()
            #expect(!guests.contains(finished.name, of: "a"))
        }
    }

    @Test("a file that could not get its final name gets it at the next attempt") func finalName() async throws {
        try await TemporaryFolder.with { folder in
            let guests = ArrivalFolder(path: "\(folder.path)/guests")
            let upload = try GuestUpload(session: "a", size: 3, in: guests, modified: 0, minimumFree: 0)
            let session = "\(guests.path)/a"
            let part = try #require(try FileManager.default.contentsOfDirectory(atPath: session).first)
            try FileManager.default.moveItem(atPath: "\(session)/\(part)", toPath: "\(folder.path)/away")
            let attempt = try accepted(upload.begin(at: 0, length: 3))
            #expect(throws: FileFault.partLost) { try upload.append(ByteBuffer(string: "abc"), of: attempt) }
            #expect(throws: FileFault.partLost) { try upload.interrupt() }
            #expect(upload.finished == nil && upload.at == 3)
            try FileManager.default.moveItem(atPath: "\(folder.path)/away", toPath: "\(session)/\(part)")
            #expect(try upload.interrupt() == 3)
            let finished = try #require(upload.finished)
            #expect(try String(contentsOfFile: guests.path(of: "a", name: finished.name), encoding: .utf8) == "abc")
        }
    }
}
