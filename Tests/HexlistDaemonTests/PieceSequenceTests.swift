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
        "a piece begins where the last one ended, and has 1 byte to 4 MiB",
        arguments: [
            (0, 1, true), (0, 4 << 20, true), (0, 0, false), (0, -1, false), (0, (4 << 20) + 1, false), (0, Int64.max, false),
        ] as [(Int64, Int64, Bool)])
    func lengths(_ offset: Int64, _ length: Int64, _ isAccepted: Bool) throws {
        var pieces = PieceSequence(size: 10 << 20)
        if isAccepted {
            _ = try accepted(pieces.begin(at: offset, length: length))
        } else {
            #expect(pieces.begin(at: offset, length: length) == .wrongLength)
        }
    }

    @Test("a gap, a repetition and bytes beyond the end are refused") func positions() throws {
        var pieces = PieceSequence(size: 5)
        let first = try accepted(pieces.begin(at: 0, length: 3))
        #expect(pieces.receive(3, of: first) && pieces.complete(first) == 3)
        for offset in [0, 2, 4, -1, .max] as [Int64] { #expect(pieces.begin(at: offset, length: 1) == .elsewhere(at: 3)) }
        #expect(pieces.begin(at: 3, length: 3) == .wrongLength)
        let second = try accepted(pieces.begin(at: 3, length: 2))
        #expect(pieces.receive(3, of: second) == false)
        #expect(pieces.receive(2, of: second) && pieces.complete(second) == 5 && pieces.isComplete)
        #expect(pieces.begin(at: 5, length: 1) == .wrongLength)
    }

    @Test("a piece counts completely or not at all, and a later attempt replaces an earlier one") func attempts() throws {
        var pieces = PieceSequence(size: 8)
        let cut = try accepted(pieces.begin(at: 0, length: 8))
        #expect(pieces.receive(7, of: cut) && pieces.complete(cut) == nil && pieces.at == 0)
        let again = try accepted(pieces.begin(at: 0, length: 8))
        #expect(!pieces.receive(1, of: cut) && pieces.complete(cut) == nil)
        #expect(pieces.receive(8, of: again) && pieces.complete(again) == 8)
        #expect(pieces.complete(again) == nil)
    }

    @Test("a cut piece leaves no bytes in the file") func file() async throws {
        try await TemporaryFolder.with { folder in
            let guests = ArrivalFolder(path: "\(folder.path)/guests")
            let part = try GuestUpload(session: "a", size: 9, in: guests, modified: 0, minimumFree: 0)
            func piece(_ text: String, length: Int64? = nil) throws -> Int64? {
                let attempt = try accepted(part.begin(at: part.at, length: length ?? Int64(text.utf8.count)))
                #expect(try part.append(ByteBuffer(string: text), of: attempt))
                return try part.complete(attempt)
            }
            #expect(try piece("abc") == 3)
            #expect(try piece("XX", length: 6) == nil)
            #expect(part.at == 3 && part.finished == nil)
            #expect(try piece("defghi") == 9)
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
}
