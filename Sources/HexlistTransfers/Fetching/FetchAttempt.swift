import HexlistEventLoop
import HexlistFiles
import HexlistStore
import HexlistTransport
import NIOCore

/// One attempt at a transfer, as the owner of all of them knows it.
protocol FetchAttempt: AnyObject, Sendable {
    var run: TransferAttemptID { get }
    var id: TransferID { get }
    /// The transfer, ahead of the store.
    var row: TransferRow { get }
    /// Bytes that arrived in this attempt.
    var arrivedBytes: Int64 { get }

    /// A whole file has its name, or why it has none.
    func placed(_ result: Result<PartFile.Placement, any Error>)

    /// Stops without an end.
    /// - Parameter discarding: whether the partial file is deleted.
    func stop(discarding: Bool)
}

/// The dependencies of every attempt.
struct FetchDependencies {
    var store: HexStore
    var pool: FilePool
    var threads: FileThreads
    var eventLoop: any EventLoop
    var clocks: Clocks
    /// Bytes that stay free on the disk.
    var minimumFree: Int64
}
