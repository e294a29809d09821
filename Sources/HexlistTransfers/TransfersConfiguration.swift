/// The settings of file transfers. All of them but `cacheFolder` may change while the daemon runs.
public struct TransfersConfiguration: Sendable {
    /// The display name of this machine.
    public var name: String
    /// Maximum size of the cache in bytes, including files that are being fetched into it.
    public var cacheBytes: Int64
    /// Number of days after which an unused file of the cache is deleted.
    public var cacheDays: Int
    /// The folder of the cache; `nil` for a folder beside the store. A change takes effect at the next start.
    public var cacheFolder: String?
    /// Bytes that must stay free on the disk.
    public var minimumFree: Int64
    /// Maximum total size in bytes of the files of a send for them to be copied by default.
    public var copyBelow: Int64
    /// The absolute path of the download folder for automatic fetches; `nil` if there is none.
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
