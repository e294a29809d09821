import HexlistFiles
import HexlistModel
import HexlistStore
import Testing

@testable import HexlistTransfers

@Suite struct QueuedTransfersTests {
    private func row(_ id: Int64, link: Int, peer: PeerID = PeerID(.nil)) -> TransferRow {
        var row = TransferRow(
            hex: nil, url: "hexlist://\(id)/" + String(repeating: "x", count: link), peer: peer, folder: "/f", mask: 0, name: "n",
            part: "p",
            size: 7, sha256: nil, modified: nil, createdAt: 0)
        row.id = id
        return row
    }

    private func add(_ row: TransferRow, to transfers: inout QueuedTransfers) { transfers.add(row, key: TransferKey(row)) }

    @Test("the maximum number of transfers with the longest links and folders uses bounded memory")
    func bounded() {
        var transfers = QueuedTransfers()
        for id in 1...Int64(TransferRow.limit) { add(row(id, link: FileLink.maximumBytes), to: &transfers) }
        #expect(transfers.count == TransferRow.limit && transfers.keptBytes <= QueuedTransfers.rowBytes)
        #expect(transfers.row(TransferID(1)) != nil && transfers.row(TransferID(20_000)) == nil)
        #expect(transfers[TransferKey(row(20_000, link: FileLink.maximumBytes))] == TransferID(20_000))
        for id in 1...Int64(TransferRow.limit) { transfers.remove(TransferID(id)) }
        #expect(transfers.count == 0 && transfers.keptBytes == 0 && !transfers.has(PeerID(.nil)))
    }

    @Test("a row not yet committed is kept in memory until it is, whatever its length")
    func unsaved() {
        var transfers = QueuedTransfers()
        for id in 1...2_000 { add(row(Int64(id), link: FileLink.maximumBytes), to: &transfers) }
        var last = row(2_000, link: FileLink.maximumBytes)
        (last.bytes, last.reason) = (3, "link")
        transfers.set(last)
        #expect(transfers.row(TransferID(2_000)) == last && transfers.entries[TransferID(2_000)]?.bytes == 3)
        let before = last
        last.bytes = 5
        transfers.set(last)
        transfers.saved(before)  // the store reports an older state as saved
        #expect(transfers.row(TransferID(2_000)) == last)
        transfers.saved(last)
        #expect(transfers.row(TransferID(2_000)) == nil && transfers.entries[TransferID(2_000)]?.bytes == 5)
        transfers.set(row(3_000, link: 1))  // a transfer that is no longer queued
        #expect(transfers.row(TransferID(3_000)) == nil)
    }
}
