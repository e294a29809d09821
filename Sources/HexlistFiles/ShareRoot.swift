public import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// A folder of this machine that is shared, read-only. What is asked for in it is opened component by component beneath it: neither `..` nor
/// a symbolic link leads out of it, also where one is put there after a look.
///
/// There are regular files and folders in it and nothing else; whatever cannot be opened is `notFound`, so that nobody learns why.
public struct ShareRoot: Sendable {
    /// Absolute, without symbolic links.
    public let path: String
    /// Whether names that begin with a dot are there.
    public let showsHidden: Bool
    /// Whether openat2(2) is passed over, for tests.
    var opensByHand = false

    public init(path: String, showsHidden: Bool = false) {
        self.path = path
        self.showsHidden = showsHidden
    }

    public enum Opened: Sendable {
        case file(OfferedFile)
        case folder(SharedFolder)
    }

    /// Whether the folder is there and can be read.
    public var isThere: Bool {
        guard case .folder? = try? open(.root) else { return false }
        return true
    }

    /// What a list says of a file or a folder of the share, under the last name of its path.
    /// - Throws: as `open`.
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
    /// - Throws: `notFound`; `system` where this machine is at fault, as without free descriptors.
    public func open(_ path: SharePath) throws(FileFault) -> Opened {
        guard showsHidden || !path.names.contains(where: { $0.utf8.first == UInt8(ascii: ".") }) else { throw .notFound }
        do throws(FileFault) {
            // The path was resolved when it was shared: a link in it is put there since, and leads to another folder.
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

/// A folder of a share, open for reading its list.
public struct SharedFolder: Sendable {
    let descriptor: Descriptor
    let showsHidden: Bool

    /// A part of the list.
    public struct Page: Sendable {
        /// Files and folders in the order of their names' bytes; `next` where there are more.
        public var listing: FolderListing
        /// Entries of the whole folder whose names are no UTF-8, which are in no list.
        public var unreadable: Int
    }

    /// Reads a page: the first entries behind a place. Each page looks at all entries of the folder and keeps no more than two pages of them,
    /// so that a folder of any size takes little memory; what is added meanwhile is in a later page if its place is behind the last one.
    /// - Parameters:
    ///   - cursor: the `next` of the page before; `nil` for the first page.
    ///   - limit: the most entries of the page.
    /// - Throws: `notFound` for a cursor that is none.
    public func page(
        by order: FileOrder = .name, after cursor: String? = nil, limit: Int = FolderListing.maximumEntries
    ) throws(FileFault) -> Page {
        let reading = try reading(by: order, after: cursor, limit: limit)
        while true {
            if let page = try reading.step() { return page }
        }
    }

    /// Begins to read a page in steps; parameters and faults as of `page`.
    public func reading(
        by order: FileOrder = .name, after cursor: String? = nil, limit: Int = FolderListing.maximumEntries
    ) throws(FileFault) -> FolderReading {
        let after = cursor.flatMap { FolderCursor($0, order) }
        guard cursor == nil || after != nil else { throw .notFound }
        return try FolderReading(self, order, after, limit: max(1, min(limit, FolderListing.maximumEntries)))
    }
}

/// Reads one page of a folder in bounded steps, so that a large folder does not hold a thread. Not thread-safe.
public final class FolderReading: @unchecked Sendable {
    /// The most entries that one step looks at. With a look at each file that is about 2 ms.
    public static let entriesAtOnce = 1_024

    private let folder: SharedFolder
    private let order: FileOrder
    private let limit: Int
    private let entries: EntryStream
    private var first: SmallestEntries
    private var unreadable = 0

    fileprivate init(_ folder: SharedFolder, _ order: FileOrder, _ after: FolderCursor?, limit: Int) throws(FileFault) {
        (self.folder, self.order, self.limit) = (folder, order, limit)
        entries = try EntryStream(of: folder.descriptor)
        first = SmallestEntries(limit: limit + 1, after: after)
    }

    /// Looks at the next entries. Blocks.
    /// - Returns: the page, once all entries were looked at; `nil` before.
    public func step() throws(FileFault) -> SharedFolder.Page? {
        var looked = 0
        let hasMore = try entries.read { name, kind in
            look(name, kind)
            looked += 1
            return looked < Self.entriesAtOnce
        }
        return hasMore ? nil : page()
    }

    private func look(_ name: UnsafeBufferPointer<UInt8>, _ kind: Descriptor.EntryKind) {
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
        for place in listed {
            let name = String(decoding: place.name, as: UTF8.self)
            guard SharePath.isName(name), let status = try? folder.descriptor.status(of: name), status.isRegular || status.isFolder else {
                continue
            }
            listing.entries.append(FolderListing.Entry(name: name, status))
        }
        if found.count > limit, let last = listed.last { listing.next = last.cursor(order) }
        listing.unlisted = unreadable
        return SharedFolder.Page(listing: listing, unreadable: unreadable)
    }
}

extension FolderListing {
    /// The number of a place in an order that is not that of names.
    fileprivate static func number(_ status: stat, _ order: FileOrder) -> Int64 {
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
