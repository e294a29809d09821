import HexlistEventLoop
import HexlistFiles
import HexlistStore
import HexlistTransport
import NIOCore

/// One attempt at a transfer, in the form in which `FileFetching` uses it.
protocol FetchAttempt: AnyObject, Sendable {
    var run: TransferAttemptID { get }
    var id: TransferID { get }
    /// The row of the transfer, with changes that may not be in the store yet.
    var row: TransferRow { get }
    /// Number of bytes that this attempt has received.
    var arrivedBytes: Int64 { get }

    /// Reports the result of renaming the complete file to its final name.
    func placed(_ result: Result<PartFile.Placement, any Error>)

    /// Ends the attempt without a report of its result.
    /// - Parameter discarding: whether to delete the partial file.
    func stop(discarding: Bool)
}

/// The objects that all attempts use.
struct FetchDependencies {
    var store: HexStore
    var pool: FilePool
    var threads: FileThreads
    var eventLoop: any EventLoop
    var clocks: Clocks
    /// Bytes that must stay free on the disk.
    var minimumFree: Int64
}
