import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// A folder of this machine that is shared, read-only. What is asked for in it is opened component by component beneath it: neither `..` nor
/// a symbolic link leads out of it, also where one is put there after a look.
///
/// There are regular files and folders in it and nothing else; whatever cannot be opened is `notFound`, so that nobody learns why.
public struct ShareRoot: Sendable {
    /// Absolute.
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

    /// Opens a file or a folder of the share.
    /// - Throws: `notFound`; `system` where this machine is at fault, as without free descriptors.
    public func open(_ path: SharePath) throws(FileFault) -> Opened {
        guard showsHidden || !path.names.contains(where: { $0.utf8.first == UInt8(ascii: ".") }) else { throw .notFound }
        do throws(FileFault) {
            let root = try Descriptor.open(self.path, O_RDONLY | O_DIRECTORY)
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

    /// Reads a page: the first entries behind a name. Each page reads all names of the folder and keeps no more than two pages of them, so
    /// that a folder of any size takes little memory; what is added meanwhile is in a later page if its name is behind the last one.
    /// - Parameters:
    ///   - name: the last name of the page before; `nil` for the first page.
    ///   - limit: the most entries of the page.
    public func page(after name: String? = nil, limit: Int = FolderListing.maximumEntries) throws(FileFault) -> Page {
        let limit = max(1, min(limit, FolderListing.maximumEntries))
        var names = FirstNames(limit: limit + 1, after: name.map { Array($0.utf8) })
        var unreadable = 0
        try descriptor.entries { name, kind in
            guard kind == .file || kind == .folder || kind == .unknown, showsHidden || name.first != UInt8(ascii: ".") else { return true }
            if names.mayTake(name) {
                if String(validating: name, as: UTF8.self) == nil { unreadable += 1 } else { names.insert(Array(name)) }
            } else if name.contains(where: { $0 >= 0x80 }), String(validating: name, as: UTF8.self) == nil {
                unreadable += 1
            }
            return true
        }
        let found = names.sorted()
        let listed = found.prefix(limit)
        var listing = FolderListing()
        for bytes in listed {
            let name = String(decoding: bytes, as: UTF8.self)
            guard SharePath.isName(name), let status = try? descriptor.status(of: name), status.isRegular || status.isFolder else {
                continue
            }
            let modified = FileIdentity(status).modified / 1_000_000
            listing.entries.append(
                FolderListing.Entry(
                    name: name, kind: status.isFolder ? .folder : .file, size: status.isFolder ? nil : Int64(status.st_size),
                    modified: modified))
        }
        if found.count > limit, let last = listed.last { listing.next = String(decoding: last, as: UTF8.self) }
        return Page(listing: listing, unreadable: unreadable)
    }
}

/// The first names in the order of their bytes, of as many as come, in the memory of twice as many as are wanted.
struct FirstNames {
    private let limit: Int
    private let after: [UInt8]?
    private var names: [[UInt8]] = []
    /// The last name that can still be among the first ones.
    private var last: [UInt8]?

    /// The names that are kept.
    var count: Int { names.count }

    init(limit: Int, after: [UInt8]?) {
        self.limit = limit
        self.after = after
    }

    /// Whether a name could be among them.
    func mayTake(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        if let after, !after.lexicographicallyPrecedes(name) { return false }
        if let last, last.lexicographicallyPrecedes(name) { return false }
        return true
    }

    mutating func insert(_ name: [UInt8]) {
        names.append(name)
        if names.count >= 2 * limit { cut() }
    }

    private mutating func cut() {
        names.sort { $0.lexicographicallyPrecedes($1) }
        names.removeSubrange(min(limit, names.count)...)
        if names.count == limit { last = names.last }
    }

    func sorted() -> [[UInt8]] {
        var copy = self
        copy.cut()
        return copy.names
    }
}
