/// Settings of file transfers. All but `cacheFolder` can change while the daemon runs.
public struct TransfersConfiguration: Sendable {
    /// The display name of this machine.
    public var name: String
    /// Maximum size of the pool in bytes, including files that are being fetched into it.
    public var cacheBytes: Int64
    /// Number of days after which an unused file in the pool is deleted.
    public var cacheDays: Int
    /// The folder of the pool; `nil` for a folder beside the store. Read only at start.
    public var cacheFolder: String?
    /// Bytes that must stay free on the disk.
    public var minimumFree: Int64

    public init(name: String, cacheBytes: Int64, cacheDays: Int, cacheFolder: String?, minimumFree: Int64) {
        self.name = name
        self.cacheBytes = cacheBytes
        self.cacheDays = cacheDays
        self.cacheFolder = cacheFolder
        self.minimumFree = minimumFree
    }
}
