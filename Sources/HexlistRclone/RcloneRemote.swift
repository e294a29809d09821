public import HexlistAPI
public import HexlistFiles
import HexlistJSON
public import HexlistModel

/// An rclone remote, which lists folders, copies files, and creates links.
public struct RcloneRemote: Sendable {
    /// The name in rclone's configuration, valid by `Rclone.isName`.
    public let name: String
    /// The name in the API and for users. It differs from `name` only for a remote called `shares`, which becomes `rclone.shares`.
    public let serviceName: String
    /// rclone's type of the remote, such as `s3` or `dropbox`.
    public let kind: String
    /// The rclone command with the configuration in use, to be shown in hints.
    let command: String
    let process: RcloneProcess
    let scheduler: RequestScheduler
    let listings: ListingCache

    /// Maximum number of entries in a folder.
    static let maximumEntries = 100_000
    /// Maximum size of rclone's answer with a listing, in bytes.
    private static let listBytes = 64 << 20
    private static let answerBytes = 1 << 20

    /// The service that links to files of this remote name: a name known to Hexlist, such as `Dropbox`, or rclone's type of the remote.
    public var service: String {
        switch kind {
        case "dropbox": Service.dropbox.rawValue
        case "box": Service.box.rawValue
        case "drive": Service.googleDrive.rawValue
        default: kind
        }
    }

    public var view: ServiceView { ServiceView(name: serviceName, kind: .rclone, service: service) }

    // MARK: Listing

    /// Returns a page of a folder. The first page queries the service; later pages come from the listing, which is cached for a minute.
    /// - Parameter after: the `next` of the previous page.
    public func page(of path: SharePath, by order: FolderSortOrder, after: String?, limit: Int, force: Bool = false) async throws
        -> FilePage
    {
        let folder = path.description
        var listing = after == nil ? nil : listings.listing(name, folder, order, now: .now)
        if listing == nil {
            let read = try await translatingFaults(path) {
                try await scheduler.perform(.list(path: .init(folder)), force: force) { try await list(folder) }
            }
            let sorted = RemoteListing(read.entries, by: order, leftOut: read.leftOut)
            listings.keep(sorted, name, folder, now: .now)
            listing = sorted
        }
        guard let page = listing?.page(after: after, limit: limit) else {
            throw HexlistError(.badRequest, "`after` is not a cursor of this list.", hint: "Use the `next` of the previous page.")
        }
        return page
    }

    private func list(_ folder: String) async throws -> (entries: [FileEntry], leftOut: Int) {
        let (fs, limit) = (name + ":", Self.maximumEntries)
        let answer = try await process.call("operations/list", limit: Self.listBytes) { json in
            json.member("fs", fs)
            json.member("remote", folder)
        }
        guard let elements = answer["list"]?.elements else { throw RcloneFault.unreadable("it has no list") }
        guard elements.count <= limit else {
            throw RcloneFault.tooMany("The folder has \(elements.count) entries; at most \(limit) can be listed.")
        }
        let entries = elements.compactMap(FileEntry.init(rclone:))
        if entries.isEmpty, elements.isEmpty, !folder.isEmpty, try await isFile(folder) {
            throw HexlistError(
                .badRequest, "\(TerminalText.clean("\(serviceName):\(folder)", columns: 200)) is a file.", hint: "Give its folder."
            )
        }
        return (entries, elements.count - entries.count)
    }

    /// Returns the metadata of a file or folder.
    public func entry(at path: SharePath, force: Bool = false) async throws -> FileEntry {
        guard let last = path.names.last else { return FileEntry(name: "", kind: .folder) }
        let text = path.description
        let found = try await translatingFaults(path) {
            try await scheduler.perform(.entry(path: .init(text)), force: force) { () async throws -> FileEntry in
                guard let entry = try await stat(text) else { throw RcloneFault.refused(status: 404, message: "") }
                return entry
            }
        }
        return FileEntry(
            name: last, kind: found.kind.known ?? .file, size: found.size, modified: found.modified, mediaType: found.mediaType)
    }

    /// Whether the path leads to a file. rclone lists a file like an empty folder, so an empty listing does not tell them apart.
    private func isFile(_ path: String) async throws -> Bool { try await stat(path)?.kind.known == .file }

    private func stat(_ path: String) async throws -> FileEntry? {
        let fs = name + ":"
        let answer = try await process.call("operations/stat", limit: Self.answerBytes) { json in
            json.member("fs", fs)
            json.member("remote", path)
        }
        return answer["item"].flatMap(FileEntry.init(rclone:))
    }

    // MARK: Copying

    /// Maximum duration of a copy in hours.
    static let copyHours: Int64 = 720

    /// Copies a file of the remote into a local folder, replacing an existing file. Cancelling the task cancels the copy.
    /// Copies bypass the request scheduler, because `TransferQueue` has its own limits and back-off.
    /// - Parameter file: the name of the local file. Consists of letters, digits and dots only, which have no special meaning for rclone.
    func copy(_ path: SharePath, to folder: String, as file: String) async throws {
        let (fs, source) = (name + ":", path.description)
        guard !folder.unicodeScalars.contains(where: Self.isRead) else {
            throw RemoteFault(
                .final, "folder",
                HexlistError(.badRequest, "rclone cannot write into a folder whose path contains control pictures."))
        }
        do {
            _ = try await process.call("operations/copyfile", limit: Self.answerBytes, seconds: Self.copyHours * 3_600) { json in
                json.member("srcFs", fs)
                json.member("srcRemote", source)
                json.member("dstFs", folder)
                json.member("dstRemote", file)
                // Without this option, rclone 1.63 and later would write to a temporary name first.
                json.named("_config") { $0.object { $0.member("Inplace", true) } }
            }
        } catch let fault as RcloneFault {
            throw fault.remoteFault(error(of: fault, source))
        }
    }

    /// Whether rclone decodes a character of a local path as an encoded other one: the control pictures (U+2400…U+2421), and the quotation
    /// mark that escapes them (U+201B).
    private static func isRead(_ scalar: Unicode.Scalar) -> Bool { (0x2400...0x2421).contains(scalar.value) || scalar.value == 0x201B }

    // MARK: Links

    /// Types of remotes for which rclone can revoke a link. For other types it ignores the option and creates a permanent public link, so
    /// such requests are refused.
    private static let revoking: Set = ["jottacloud", "yandex"]
    /// Types of remotes for which rclone supports links that expire. For other types it ignores the option, so such requests are refused.
    private static let expiring: Set = ["b2", "dropbox", "onedrive", "s3"]

    /// Creates or revokes links, several at a time, and reports the result of each path in any order.
    /// - Parameter expire: seconds until the links expire; `nil` for the service's default.
    public func links(
        to paths: [SharePath], expire: Double?, revokes: Bool, force: Bool = false, each: @escaping @Sendable (ServiceLinkResult) -> Void
    ) async throws {
        var rest = paths[...]
        try await withThrowingTaskGroup(of: ServiceLinkResult.self) { group in
            func next() {
                guard let path = rest.popFirst() else { return }
                group.addTask { try await reply(to: path, expire, revokes, force) }
            }
            for _ in 0..<RequestQueue.slotCount { next() }
            while let reply = try await group.next() {
                try Task.checkCancellation()
                each(reply)
                next()
            }
        }
        try Task.checkCancellation()
    }

    private func reply(to path: SharePath, _ expire: Double?, _ revokes: Bool, _ force: Bool) async throws -> ServiceLinkResult {
        let text = path.description
        do {
            let key: SuspendedRequestKey = revokes ? .revoke(path: .init(text)) : .link(path: .init(text))
            let url = try await translatingFaults(path) {
                try await scheduler.perform(key, force: force) { try await link(text, expire, revokes) }
            }
            return ServiceLinkResult(path: text, url: url, service: url == nil ? nil : service)
        } catch let error as HexlistError {
            return ServiceLinkResult(path: text, error: error)
        }
    }

    /// Creates or revokes one link.
    /// - Returns: the link; `nil` if it was revoked.
    private func link(_ path: String, _ expire: Double?, _ revokes: Bool) async throws -> String? {
        if revokes, !Self.revoking.contains(kind) {
            throw RcloneFault.refused(status: 500, message: "revoking links is not supported by rclone for \(service).")
        }
        if expire != nil, !Self.expiring.contains(kind) {
            throw RcloneFault.refused(status: 500, message: "links with an expiry are not supported by rclone for \(service).")
        }
        let fs = name + ":"
        let answer = try await process.call("operations/publiclink", limit: Self.answerBytes) { json in
            json.member("fs", fs)
            json.member("remote", path)
            if let expire { json.member("expire", "\(Int64(min(max(1, expire), 1e9)))s") }
            if revokes { json.member("unlink", true) }
        }
        if revokes { return nil }
        guard let url = answer["url"]?.string, Self.isLink(url) else { throw RcloneFault.unreadable("it has no link") }
        return url
    }

    /// Whether a text is an HTTP(S) URL of printable ASCII.
    private static func isLink(_ text: String) -> Bool {
        let bytes = text.utf8
        return bytes.count <= 16_384 && bytes.allSatisfy { (0x21...0x7E).contains($0) }
            && ["https://", "http://"].contains { bytes.starts(with: $0.utf8) }
    }

    /// Runs `body`, and converts its faults to errors for the user.
    private func translatingFaults<Answer>(_ path: SharePath, _ body: () async throws -> Answer) async throws -> Answer {
        do {
            return try await body()
        } catch let fault as RcloneFault {
            throw error(of: fault, path.description)
        }
    }

    private func error(of fault: RcloneFault, _ path: String) -> HexlistError {
        fault.error(serviceName, path, kind: kind, command: command)
    }
}

extension FileEntry {
    /// Reads an entry of a listing by rclone; `nil` if its name is invalid.
    init?(rclone json: JSONValue) {
        guard let object = try? JSONObject(json), let name = object["Name"]?.string, SharePath.isName(name),
            let isFolder = object["IsDir"]?.bool
        else { return nil }
        self.init(name: name, kind: isFolder ? .folder : .file)
        if !isFolder, let size = object["Size"]?.integer, size >= 0 { self.size = size }
        modified = object["ModTime"]?.string.flatMap(Timestamp.init(rfc3339:))
        if !isFolder, let type = object["MimeType"]?.string, (1...127).contains(type.utf8.count),
            type.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        {
            mediaType = type
        }
    }
}
