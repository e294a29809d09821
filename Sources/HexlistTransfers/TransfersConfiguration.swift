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
    /// The files of a send are copied by default if their total size in bytes is at most this.
    public var copyBelow: Int64
    /// The absolute path of the folder for files of peers whose files are downloaded automatically; `nil` if there is none.
    public var downloads: String?

    public init(
        name: String, cacheBytes: Int64, cacheDays: Int, cacheFolder: String?, minimumFree: Int64, copyBelow: Int64 = 16 << 20,
        downloads: String? = nil
    ) {
        self.name = name
        self.cacheBytes = cacheBytes
        self.cacheDays = cacheDays
        self.cacheFolder = cacheFolder
        self.minimumFree = minimumFree
        self.copyBelow = copyBelow
        self.downloads = downloads
    }
}
