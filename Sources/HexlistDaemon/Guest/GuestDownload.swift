import HexlistFiles
import HexlistModel
import HexlistTransfers
import NIOCore

/// The content of a file that a guest downloads. It is read in chunks, until the invitation ends. Only one request uses it, and reads one
/// chunk at a time.
final class GuestDownload: @unchecked Sendable {
    /// Maximum bytes of a chunk.
    private static let chunk: Int64 = 512 << 10

    private let file: OfferedFile
    private let ticket: String
    private let address: IPAddress
    private let guests: GuestInvitationRegistry
    private let transfers: FileTransfers
    private var left: Range<Int64>

    init(
        file: OfferedFile, range: Range<Int64>, ticket: String, address: IPAddress, guests: GuestInvitationRegistry,
        transfers: FileTransfers
    ) {
        self.file = file
        left = range
        self.ticket = ticket
        self.address = address
        self.guests = guests
        self.transfers = transfers
    }

    /// Reads the next chunk.
    /// - Returns: `nil` at the end.
    /// - Throws: `GuestRefusal` if the invitation has ended, `FileFault` if the file has changed.
    func next() async throws -> ByteBuffer? {
        guard !left.isEmpty else { return nil }
        guard guests.isReadable(ticket: ticket, from: address) else { throw GuestRefusal.over }
        let (file, start, count) = (file, left.lowerBound, Int(min(Self.chunk, left.upperBound - left.lowerBound)))
        let bytes = try await transfers.onFileThread {
            var bytes = ByteBuffer()
            try bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { space in
                try file.read(into: UnsafeMutableRawBufferPointer(rebasing: space[..<count]), at: start)
            }
            if start + Int64(count) == file.size { try file.check() }
            return bytes
        }
        left = start + Int64(count)..<left.upperBound
        return bytes
    }
}
