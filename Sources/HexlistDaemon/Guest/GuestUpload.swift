import HexlistFiles
import NIOCore
import Synchronization

/// A file that a guest uploads: the state of its pieces, and the partial file on the disk. Its methods block while they use the disk.
final class GuestUpload: Sendable {
    struct Finished: Sendable {
        var sha256: [UInt8]
        /// The name of the file in the `ArrivalFolder`.
        var name: String
    }

    private struct State {
        var pieces: PieceSequence
        var finished: Finished?
    }

    private let session: String
    private let folder: ArrivalFolder
    private let part: PartFile
    private let state: Mutex<State>

    /// Creates the partial file. A file of 0 bytes is complete immediately.
    /// - Parameters:
    ///   - session: an id of this file, from letters and digits, which names its folder in the `ArrivalFolder`.
    ///   - modified: the modification time in milliseconds since 1970.
    ///   - minimumFree: number of bytes that have to stay free on the disk.
    /// - Throws: `FileFault`: `diskFull`, `notAllowed`, `system`.
    init(session: String, size: Int64, in folder: ArrivalFolder, modified: Int64, minimumFree: Int64) throws {
        let (nanoseconds, overflow) = modified.multipliedReportingOverflow(by: 1_000_000)
        part = try folder.begin(
            session, number: 0, size: size, digest: nil, modified: overflow ? nil : nanoseconds, minimumFree: minimumFree)
        (self.session, self.folder) = (session, folder)
        state = Mutex(State(pieces: PieceSequence(size: size)))
        try state.withLock { state in if state.pieces.isComplete { try finish(&state) } }
    }

    /// The offset of the next byte.
    var at: Int64 { state.withLock { $0.pieces.at } }

    /// The complete file; `nil` until its last byte is written.
    var finished: Finished? { state.withLock { $0.finished } }

    /// Ends the attempt in progress, so that late bytes of a request that the client has given up do not change the offset. If all bytes are
    /// written, but the file could not be made durable or get its final name, tries this again.
    /// - Parameter sentAt: when the client sent the request, as in `PieceSequence.interrupt`.
    /// - Returns: the offset of the next byte.
    /// - Throws: `FileFault`: `diskFull` if there is no space for the rest of the file; faults of `PartFile.finish`.
    func interrupt(sentAt: Int64 = .max) throws -> Int64 {
        let at = try state.withLock { state in
            state.pieces.interrupt(sentAt: sentAt)
            if state.pieces.isComplete, state.finished == nil { try finish(&state) }
            return state.pieces.at
        }
        if finished == nil { try part.checkRoom() }
        return at
    }

    /// Begins an attempt to receive a piece.
    /// - Throws: `FileFault` `diskFull` if there is no space for the rest of the file. Without this check, each attempt could write until
    ///   `PartFile.append` checks the space.
    func begin(at offset: Int64, length: Int64, sentAt: Int64 = 0) throws -> PieceSequence.Beginning {
        if finished == nil { try part.checkRoom() }
        return state.withLock { $0.pieces.begin(at: offset, length: length, sentAt: sentAt) }
    }

    /// Writes bytes of a piece. After the last byte of the file, makes the file durable. After an error, `at` is the number of written bytes.
    /// - Returns: `false` if the attempt has ended, or if the piece has more bytes than announced.
    func append(_ bytes: ByteBuffer, of attempt: PieceSequence.Attempt) throws -> Bool {
        try state.withLock { state in
            guard state.pieces.receive(Int64(bytes.readableBytes), of: attempt) else { return false }
            do {
                try bytes.withUnsafeReadableBytes { bytes in try part.append(bytes) }
            } catch {
                state.pieces.interrupt(at: part.length)
                throw error
            }
            if state.pieces.isComplete { try finish(&state) }
            return true
        }
    }

    /// Makes the file durable under its final name. After an error, `at` is the number of bytes that are still written.
    private func finish(_ state: inout State) throws {
        let digest = part.digest
        do {
            state.finished = Finished(sha256: digest, name: try part.finish().name)
        } catch {
            state.pieces.interrupt(at: part.length)
            throw error
        }
    }

    func discard() {
        part.discard()
        folder.remove(session)
    }
}
