import HexlistEventLoop
import HexlistFiles
import HexlistStore
import HexlistTransport
import NIOCore

/// One attempt at a transfer, as `FileFetching` sees it.
protocol FetchAttempt: AnyObject, Sendable {
    var run: TransferAttemptID { get }
    var id: TransferID { get }
    /// The transfer's row, which may be newer than the one in the store.
    var row: TransferRow { get }
    /// Number of bytes that arrived in this attempt.
    var arrivedBytes: Int64 { get }

    /// Reports that the complete file has its final name, or the error that prevented it.
    func placed(_ result: Result<PartFile.Placement, any Error>)

    /// Stops the attempt without reporting an end.
    /// - Parameter discarding: whether to delete the partial file.
    func stop(discarding: Bool)
}

/// Dependencies that all attempts share.
struct FetchDependencies {
    var store: HexStore
    var pool: FilePool
    var threads: FileThreads
    var eventLoop: any EventLoop
    var clocks: Clocks
    /// Bytes that must stay free on the disk.
    var minimumFree: Int64
}
