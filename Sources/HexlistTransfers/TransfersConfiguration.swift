/// The configuration of file transfers.
public struct TransfersConfiguration: Sendable {
    /// The display name of this machine.
    public var name: String
    /// The most bytes of the pool, including those that are being fetched into it.
    public var cacheBytes: Int64
    /// Days after which an unused file of the pool is deleted.
    public var cacheDays: Int
    /// The folder of the pool; `nil` for one beside the store. Read at the start only.
    public var cacheFolder: String?
    /// Bytes that stay free on the disk.
    public var minimumFree: Int64

    public init(name: String, cacheBytes: Int64, cacheDays: Int, cacheFolder: String?, minimumFree: Int64) {
        self.name = name
        self.cacheBytes = cacheBytes
        self.cacheDays = cacheDays
        self.cacheFolder = cacheFolder
        self.minimumFree = minimumFree
    }
}
