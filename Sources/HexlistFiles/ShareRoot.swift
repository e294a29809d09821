public import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// The root folder of a read-only share. Files in it are opened component by component, so neither `..` nor a symbolic link can lead out of
/// the share, even if the link is created at that moment.
///
/// Only regular files and folders are visible. Most errors are reported as `notFound`, so that peers do not learn the reason.
public struct ShareRoot: Sendable {
    /// Absolute path without symbolic links, as resolved when the folder was shared.
    public let path: String
    /// Whether files and folders whose names begin with a dot are visible.
    public let showsHidden: Bool
    /// Whether to use the fallback for kernels without openat2(2). Set in tests only.
    var opensByHand = false

    public init(path: String, showsHidden: Bool = false) {
        self.path = path
        self.showsHidden = showsHidden
    }

    public enum Opened: Sendable {
        case file(OfferedFile)
        case folder(SharedFolder)
    }

    /// Whether the folder exists and can be opened.
    public var isThere: Bool {
        guard case .folder? = try? open(.root) else { return false }
        return true
    }

    /// Returns the metadata of a file or folder in the share, in the form of an entry of a listing.
    /// - Throws: the errors of `open`.
    public func about(_ path: SharePath) throws(FileFault) -> FolderListing.Entry {
        let name = path.names.last ?? ""
        switch try open(path) {
        case .folder(let folder):
            return FolderListing.Entry(
                name: name, kind: .folder, modified: FileIdentity(try folder.descriptor.status()).modified / 1_000_000)
        case .file(let file):
            return FolderListing.Entry(
                name: name, kind: .file, size: file.size, modified: file.identity.modified / 1_000_000, mediaType: MediaType.of(name))
        }
    }

    /// Opens a file or a folder of the share.
    /// - Throws: `notFound`; `system` for errors that do not concern the path, such as too many open files.
    public func open(_ path: SharePath) throws(FileFault) -> Opened {
        guard showsHidden || !path.names.contains(where: { $0.utf8.first == UInt8(ascii: ".") }) else { throw .notFound }
        do throws(FileFault) {
            // The stored path was resolved when the folder was shared. If it has a symbolic link now, this was created later and may lead
            // elsewhere. It is therefore not followed.
            let root = try Descriptor.open(folder: self.path, byHand: opensByHand)
            let opened = try root.open(beneath: path, O_RDONLY | O_NONBLOCK, byHand: opensByHand)
            let status = try opened.status()
            if status.isFolder { return .folder(SharedFolder(descriptor: opened, showsHidden: showsHidden)) }
            return .file(try OfferedFile(opened))
        } catch {
            switch error {
            case .system(let system) where system.code != ENAMETOOLONG: throw error
            default: throw .notFound
            }
        }
    }
}

/// A folder of a share, opened for listing.
public struct SharedFolder: Sendable {
    let descriptor: Descriptor
    let showsHidden: Bool

    /// One page of the listing.
    public struct Page: Sendable {
        /// The page, in the requested order. Its `next` is set if more entries follow.
        public var listing: FolderListing
        /// Number of entries in the whole folder that are on no page, because their names are not UTF-8.
        public var unreadable: Int
    }

    /// Reads a page of the listing. Each page reads the whole folder, but only about two pages of entries are in memory, however large the
    /// folder is. Entries that are added between two pages appear on a later page if they sort after the cursor.
    /// - Parameters:
    ///   - cursor: the `next` of the previous page; `nil` for the first page.
    ///   - limit: maximum number of entries on the page.
    /// - Throws: `notFound` if the cursor is invalid.
    public func page(
        by order: FolderSortOrder = .name, after cursor: String? = nil, limit: Int = FolderListing.maximumEntries
    ) throws(FileFault) -> Page {
        let reading = try reading(by: order, after: cursor, limit: limit)
        while true {
            if let page = try reading.step() { return page }
        }
    }

    /// Begins to read a page in steps. Parameters and errors are those of `page`.
    public func reading(
        by order: FolderSortOrder = .name, after cursor: String? = nil, limit: Int = FolderListing.maximumEntries
    ) throws(FileFault) -> FolderPageReader {
        let after = cursor.flatMap { FolderCursor($0, order) }
        guard cursor == nil || after != nil else { throw .notFound }
        return try FolderPageReader(self, order, after, limit: max(1, min(limit, FolderListing.maximumEntries)))
    }
}

/// Reads one page of a folder in steps, so that a large folder blocks no thread for long. Not thread-safe.
public final class FolderPageReader: @unchecked Sendable {
    /// Maximum number of entries that one step reads. A step takes about 2 ms if stat(2) is called for each entry.
    public static let entriesAtOnce = 1_024

    private let folder: SharedFolder
    private let order: FolderSortOrder
    private let limit: Int
    private let entries: EntryStream
    private var first: FirstEntries
    private var unreadable = 0

    fileprivate init(_ folder: SharedFolder, _ order: FolderSortOrder, _ after: FolderCursor?, limit: Int) throws(FileFault) {
        (self.folder, self.order, self.limit) = (folder, order, limit)
        entries = try EntryStream(of: folder.descriptor)
        first = FirstEntries(limit: limit + 1, after: after)
    }

    /// Reads some of the remaining entries. Blocks.
    /// - Returns: the page if no entries remain; otherwise `nil`.
    public func step() throws(FileFault) -> SharedFolder.Page? {
        var examined = 0
        let hasMore = try entries.read { name, kind in
            examine(name, kind)
            examined += 1
            return examined < Self.entriesAtOnce
        }
        return hasMore ? nil : page()
    }

    private func examine(_ name: UnsafeBufferPointer<UInt8>, _ kind: Descriptor.EntryKind) {
        guard kind == .file || kind == .folder || kind == .unknown, folder.showsHidden || name.first != UInt8(ascii: ".") else { return }
        guard !name.contains(where: { $0 >= 0x80 }) || String(validating: name, as: UTF8.self) != nil else {
            unreadable += 1
            return
        }
        if order == .name {
            first.insert(0, name)
        } else if let status = try? folder.descriptor.status(of: String(decoding: name, as: UTF8.self)),
            status.isRegular || status.isFolder
        {
            first.insert(FolderListing.number(status, order), name)
        }
    }

    private func page() -> SharedFolder.Page {
        let found = first.sorted()
        let listed = found.prefix(limit)
        var listing = FolderListing()
        for entry in listed {
            let name = String(decoding: entry.name, as: UTF8.self)
            guard SharePath.isName(name), let status = try? folder.descriptor.status(of: name), status.isRegular || status.isFolder else {
                continue
            }
            listing.entries.append(FolderListing.Entry(name: name, status))
        }
        if found.count > limit, let last = listed.last { listing.next = last.text(order) }
        listing.unlisted = unreadable
        return SharedFolder.Page(listing: listing, unreadable: unreadable)
    }
}

extension FolderListing {
    /// Returns the numeric sort key of an entry; 0 if sorted by name.
    fileprivate static func number(_ status: stat, _ order: FolderSortOrder) -> Int64 {
        switch order {
        case .name: 0
        case .size: status.isFolder ? -1 : Int64(status.st_size)
        case .time: FileIdentity(status).modified / 1_000_000
        }
    }
}

extension FolderListing.Entry {
    fileprivate init(name: String, _ status: stat) {
        self.init(
            name: name, kind: status.isFolder ? .folder : .file, size: status.isFolder ? nil : Int64(status.st_size),
            modified: FileIdentity(status).modified / 1_000_000, mediaType: status.isFolder ? nil : MediaType.of(name))
    }
}
