public import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistJSON
import HexlistModel
import HexlistStore
import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// Transfers as people and scripts see them.
extension Node {
    /// Begins to fetch what the links of a hex point to, those that are named, or all of it with the hexes inside it, each of which becomes a
    /// folder; or a file or folder of a service.
    /// - Throws: `HexlistError`: `notFound` for a hex, link or file that is not there; `badRequest` where nothing can be fetched, or not
    ///   there; `recentlyFailed` for what failed repeatedly.
    public func fetch(_ request: TransferRequest) async throws -> TransferStart {
        let goal = try FetchGoal(request)
        let mask = request.umask ?? 0o022
        guard (0...0o777).contains(mask) else { throw HexlistError(.badRequest, "`umask` is a number from 0 to 511 (octal 777).") }
        if let hex = request.hex, request.service == nil, request.path == nil { return try await fetch(request, hex, goal, mask) }
        guard let service = request.service, request.hex == nil, request.links == nil else {
            throw HexlistError(.badRequest, "Either `hex`, perhaps with `links`, or `service` and `path`.")
        }
        return try await fetch(request, service, request.path ?? "", goal, mask)
    }

    private func fetch(_ request: TransferRequest, _ service: String, _ typed: String, _ goal: FetchGoal, _ mask: Int) async throws
        -> TransferStart
    {
        guard case .folder(let base) = goal else {
            throw HexlistError(.badRequest, "What is fetched of a service goes into a folder.", hint: "`--to` names it.")
        }
        guard let path = SharePath(typed: typed) else {
            throw HexlistError(.badRequest, "\(TerminalText.clean(typed, columns: 200)) is no path in a service.")
        }
        let found = try await self.service(service)
        if let peer = found as? PeerShares, let seconds = request.timeout {
            guard seconds >= 0, seconds <= LocalAPI.longestWaitSeconds else {
                throw HexlistError(.badRequest, "`timeout` is a number of seconds up to \(Int(LocalAPI.longestWaitSeconds)).")
            }
            // Where it does not come, the question below says why.
            _ = await fetching.lists.awaitPeer(peer.peer, within: .seconds(seconds), self)
            try Task.checkCancellation()
        }
        let read = try await FetchTree.read(request.force == true ? found.forced : found, path)
        let (tree, present) = try await transport.fileThreads.run(on: eventLoop) {
            var tree = read
            try DestinationFolder.make(Array(tree.folders.dropFirst()), in: base, mask: mask)
            let present = tree.dropPresent(in: base)
            return (tree, present)
        }.get()
        let now = clocks.milliseconds
        let folders = tree.folders.map { ([base == "/" ? "" : base] + $0).joined(separator: "/") }
        var start = try await begin(tree.files.count, force: request.force ?? false) { [tree, id] index in
            let file = tree.files[index]
            // A remote is none of another machine: this one fetches.
            let (url, peer) =
                switch try tree.source(of: file) {
                case .peer(let link): (link.description, link.peer)
                case .remote(let link): (link.description, id)
                }
            return TransferRow(
                hex: nil, url: url, peer: peer, folder: folders[file.folder].isEmpty ? "/" : folders[file.folder],
                mask: mask, name: file.name, part: BootNonce.random.description, size: file.size, sha256: nil, modified: file.modified,
                createdAt: now)
        }
        (start.present, start.leftOut) = (present, tree.leftOut)
        return start
    }

    private func fetch(_ request: TransferRequest, _ id: Int64, _ goal: FetchGoal, _ mask: Int) async throws -> TransferStart {
        guard let hex = try await store.read({ try $0.hex(id) }) else { throw HexlistError.noHex(id) }
        let content = hex.content
        var plan = FetchPlan(own: self.id)
        if let numbers = request.links {
            for number in numbers {
                guard content.links.indices.contains(number &- 1) else {
                    throw HexlistError(.notFound, "Hex \(id) has no link \(number).", hint: "`hexlist show \(id)` lists them.")
                }
                plan.add(content.links[number - 1], of: content, in: nil)
            }
        } else {
            plan.addAll(of: content)
        }
        guard !plan.files.isEmpty else {
            throw HexlistError(
                .badRequest,
                plan.isOwn ? "The links of hex \(id) lead to files of this machine." : "No link of hex \(id) leads to a file of a peer.",
                hint: "`hexlist open` opens links to the web.")
        }
        let now = clocks.milliseconds
        var rows = plan.files.map { file in
            TransferRow(
                hex: id, url: file.link.description, peer: file.link.peer, folder: "", mask: mask, name: file.name,
                part: String(BootNonce.random.description), size: file.size, sha256: file.sha256, modified: file.modified, createdAt: now)
        }
        switch goal {
        case .folder(let folder):
            let folders = plan.folders
            // Before anything is made on the disk.
            guard plan.files.count <= TransferRow.limit, folders.count <= TransferRow.limit else {
                throw HexlistError(
                    .tooLarge, "Hex \(id) has more than \(TransferRow.limit) files or folders; so many can be fetched at once.",
                    hint: "Name some of its links by their numbers.")
            }
            for (index, file) in plan.files.enumerated() {
                rows[index].folder = ([folder == "/" ? "" : folder] + plan.path(of: file.folder)).joined(separator: "/")
            }
            let wanted = rows
            rows = try await transport.fileThreads.run(on: eventLoop) {
                try DestinationFolder.make(folders, in: folder, mask: mask)
                return wanted.filter { !$0.isThere }
            }.get()
        case .place(let place): rows = try placed(rows, in: place, request)
        }
        var start = try await begin(rows, goal, hex: id, force: request.force ?? false, at: now)
        start.present = plan.files.count - rows.count
        start.passedOver = plan.passedOver
        return start
    }

    /// Puts transfers into the queue that are not in it.
    private func begin(_ all: [TransferRow], _ goal: FetchGoal, hex: Int64, force: Bool, at now: Int64) async throws -> TransferStart {
        // Of several links to the same one is enough.
        var seen: Set<TransferKey> = []
        var rows = all.filter { seen.insert(TransferKey($0)).inserted }
        try checkPauses(of: seen, force: force)
        let here = try await lookForPresent(&rows, goal, hex: hex, at: now)
        var new: [TransferRow] = []
        var known: [Int64] = []
        for row in rows {
            if row.state == .waiting, let running = retryKnown(TransferKey(row), force: force) {
                known.append(running)
            } else {
                new.append(row)
            }
        }
        let added = new.isEmpty ? [] : try await addTransfers(new)
        fetching.add(added.filter { $0.state == .waiting }, here: here, force: force, self)
        notifyWatchers()
        return TransferStart(
            first: added.first?.id ?? known.min(), last: added.last?.id ?? known.max(), known: known.count, passedOver: 0)
    }

    /// The rows that are made at once on their way into the queue.
    private static let rowsAtOnce = 500

    /// Puts as many transfers into the queue as it is not in yet. Their rows may have kilobytes each: they are made when they are needed.
    /// - Parameter make: makes a row, by its index; called more than once for each, on several threads.
    private func begin(
        _ count: Int, force: Bool, _ make: @escaping @Sendable (Int) throws -> TransferRow
    ) async throws -> TransferStart {
        let keys = try await onFileThread { _ in try (0..<count).map { TransferKey(try make($0)) } }
        var seen: Set<TransferKey> = []
        let wanted = keys.indices.filter { seen.insert(keys[$0]).inserted }
        try checkPauses(of: seen, force: force)
        let retried = wanted.map { retryKnown(keys[$0], force: force) }
        let (new, known) = (zip(wanted, retried).filter { $0.1 == nil }.map(\.0), retried.compactMap(\.self))
        guard !new.isEmpty else {
            return TransferStart(first: known.min(), last: known.max(), known: known.count, passedOver: 0)
        }
        let ids = try await store.addTransfers(new.count) { try make(new[$0]).checkingLink() }
        for start in stride(from: 0, to: new.count, by: Self.rowsAtOnce) {
            let rows = try await store.read { [id = ids.lowerBound] in
                try $0.transfers((start..<min(start + Self.rowsAtOnce, new.count)).map { id + Int64($0) })
            }
            fetching.add(rows.filter { $0.state == .waiting }, force: force, self)
        }
        notifyWatchers()
        return TransferStart(first: ids.lowerBound, last: ids.upperBound, known: known.count, passedOver: 0)
    }

    /// - Throws: `HexlistError` `recentlyFailed` if one of these failed repeatedly a moment ago.
    private func checkPauses(of keys: Set<TransferKey>, force: Bool) throws {
        guard !force, let until = keys.compactMap({ fetching.pause(of: $0, now: clocks.now) }).max() else { return }
        let seconds = max(1, (until - clocks.now).components.seconds)
        throw HexlistError(
            .recentlyFailed, "This failed repeatedly; it can be started again in \(seconds) s.", hint: "`--force` starts it now.")
    }

    /// Tries a transfer again that is in the queue already.
    /// - Returns: its id; `nil` if there is none.
    private func retryKnown(_ key: TransferKey, force: Bool) -> Int64? {
        guard let running = fetching.known(key) else { return nil }
        _ = fetching.retry(running, force: force, self)
        return running.value
    }

    /// The rows of files that go under their digest.
    /// - Throws: `HexlistError` `badRequest` for one that has none.
    private func placed(_ rows: [TransferRow], in place: PoolPlace, _ request: TransferRequest) throws -> [TransferRow] {
        try rows.map { row in
            guard let digest = row.sha256, row.size != nil else {
                let numbers = [row.hex.map { "\($0)" } ?? ""] + (request.links ?? []).map { "\($0)" }
                throw HexlistError(
                    .badRequest, "The link to \(row.name) says neither how large the file is nor which SHA-256 it has.",
                    hint: "`hexlist fetch \(numbers.joined(separator: " "))` fetches it into the current folder.")
            }
            var placed = row
            (placed.place, placed.folder, placed.mask) = (place, pool.folder(place).folder(of: digest), 0o177)
            return placed
        }
    }

    /// Looks which files are here already because their peer sent them. Those that are to be under their digest are done.
    /// - Returns: those that are here.
    private func lookForPresent(
        _ rows: inout [TransferRow], _ goal: FetchGoal, hex: Int64, at now: Int64
    ) async throws -> Set<PooledOrigin> {
        let digests = Array(Set(rows.compactMap(\.sha256)))
        if goal == .place(.kept) {
            try await store.keep(digests, for: hex)
            pool.keepingChanged()
            try await onFileThread { try $0.settle() }
        }
        let wanted = Dictionary(grouping: rows.filter { $0.sha256 != nil }, by: \.peer).mapValues { Array(Set($0.compactMap(\.sha256))) }
        let here = try await onFileThread { pool in
            var here: [PooledOrigin: PooledFile] = [:]
            for (peer, digests) in wanted {
                for file in try pool.use(digests, from: peer, for: goal.isFolder ? nil : hex, at: now) {
                    here[PooledOrigin(sha256: file.sha256, peer: peer)] = file
                }
            }
            return here
        }
        for (index, row) in rows.enumerated() where row.place != nil {
            guard let digest = row.sha256, let file = here[PooledOrigin(sha256: digest, peer: row.peer)] else { continue }
            rows[index].folder = pool.folder(file.place).folder(of: digest)
            rows[index].place = file.place
            (rows[index].state, rows[index].finalName, rows[index].endedAt) = (.done, file.name, now)
            (rows[index].bytes, rows[index].size) = (file.size, file.size)
        }
        return Set(here.keys)
    }

    /// A page, the newest first.
    /// - Parameter before: the cursor of the page before.
    public func transfers(_ stages: Set<TransferStage>?, before: Int64?, limit: Int) async throws -> (rows: [TransferView], next: Int64?) {
        let states = stages.map { Set($0.map(\.stored)) }
        var cursor = before
        while true {
            let page = try await store.read { [cursor] in try $0.transferPage(states, before: cursor, limit: limit) }
            let views = page.items.map(view(of:)).filter { view in stages.map { view.state.known.map($0.contains) ?? false } ?? true }
            guard views.isEmpty, let next = page.next else { return (views, page.next) }
            cursor = next
        }
    }

    /// - Throws: `HexlistError` `notFound`.
    public func transfer(_ id: Int64) async throws -> TransferView {
        guard let row = try await store.read({ try $0.transfers([id]) }).first else { throw Node.noTransfer(id) }
        return view(of: row)
    }

    /// How the transfers of these ids stand together.
    public func transferSummary(_ ids: ClosedRange<Int64>) async throws -> TransferSummary {
        let sums = try await store.read { try $0.transferSums(ids) }
        var summary = TransferSummary()
        for (state, sum) in sums where state != .waiting {
            switch state {
            case .done: summary.done = sum.count
            case .failed: summary.failed = sum.count
            case .cancelled: summary.cancelled = sum.count
            case .waiting: break
            }
            guard state == .done else { continue }
            summary.bytes = summary.bytes.addingClamped(sum.bytes)
            summary.size = summary.size.addingClamped(sum.size)
        }
        for (id, entry) in fetching.transfers.entries where ids.contains(id.value) {
            switch fetching.queue.state(of: id) {
            case .running: summary.running += 1
            case .waiting(.turn), .waiting(.source): summary.soon += 1
            default: summary.waiting += 1
            }
            summary.bytes = summary.bytes.addingClamped(entry.bytes)
            summary.size = summary.size.addingClamped(entry.size ?? entry.bytes)
        }
        // What ended a moment ago and is being written.
        let waiting = sums[.waiting]?.count ?? 0
        summary.soon += max(0, waiting - summary.running - summary.soon - summary.waiting)
        return summary
    }

    /// Gives a transfer up; what is there of it is deleted. One that ended stays what it is.
    public func cancelTransfer(_ id: Int64) async throws -> TransferView {
        guard let row = try await store.read({ try $0.transfers([id]) }).first else { throw Node.noTransfer(id) }
        guard fetching.cancel(row, self) else {
            throw HexlistError(
                .badRequest, "Transfer \(id) has ended already: \(view(of: row).state).",
                hint: "`hexlist transfers rm \(id)` takes it off the list.")
        }
        return try await settledTransfer(id)
    }

    /// Tries a transfer again now: one that waits, or one that failed or was cancelled.
    public func retryTransfer(_ id: Int64, force: Bool) async throws -> TransferView {
        guard var row = try await store.read({ try $0.transfers([id]) }).first else { throw Node.noTransfer(id) }
        if fetching.transfers.contains(TransferID(id)) {
            if case .paused(let until) = fetching.retry(TransferID(id), force: force, self) {
                throw HexlistError(
                    .recentlyFailed,
                    "Transfer \(id) failed repeatedly and pauses for \(max(1, (until - clocks.now).components.seconds)) s.",
                    hint: "`--force` tries it now.")
            }
            return view(of: row)
        }
        guard row.state != .done else {
            throw HexlistError(.badRequest, "Transfer \(id) is done.", hint: "`hexlist fetch` fetches it again where it is there no more.")
        }
        if let other = fetching.known(TransferKey(row)) { throw HexlistError(.badRequest, "Transfer \(other) fetches the same.") }
        if !force, let until = fetching.pause(of: TransferKey(row), now: clocks.now) {
            throw HexlistError(
                .recentlyFailed,
                "Transfer \(id) failed repeatedly; it can be tried again in \(max(1, (until - clocks.now).components.seconds)) s.",
                hint: "`--force` tries it now.")
        }
        (row.state, row.reason, row.error, row.endedAt) = (.waiting, nil, nil, nil)
        row.reservedBytes = nil  // somebody asks for it
        try await updated(row)
        fetching.add([row], force: force, self)
        notifyWatchers()
        return view(of: row)
    }

    /// Takes transfers that came to an end off the list. Files stay.
    public func forgetTransfer(_ id: Int64) async throws {
        let row = try await transfer(id)
        guard try await store.forgetTransfers([id]) == 1 else {
            throw HexlistError(.badRequest, "Transfer \(id) is \(row.state).", hint: "`hexlist transfers cancel \(id)` first.")
        }
    }

    /// Waits for what was submitted before, so that the row shows it.
    private func settledTransfer(_ id: Int64) async throws -> TransferView {
        try await store.setMeta(["transfersSeen": nil])
        return try await transfer(id)
    }

    private func updated(_ row: TransferRow) async throws {
        let store = store
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            store.updateTransfers([row]) { continuation.resume(with: $0) }
        }
    }

    private static func noTransfer(_ id: Int64) -> HexlistError {
        HexlistError(.notFound, "There is no transfer \(id).", hint: "`hexlist transfers` lists them.")
    }

    private func view(of stored: TransferRow) -> TransferView {
        let id = TransferID(stored.id)
        var row = fetching.transfers.row(id) ?? stored
        if let entry = fetching.transfers.entries[id] { (row.bytes, row.size) = (entry.bytes, entry.size) }
        let present = stored.state == .waiting ? fetching.queue.state(of: id) : nil
        var (stage, wait, until): (TransferStage, String?, Timestamp?) = (row.state.stage, nil, nil)
        switch present {
        case .running: stage = .running
        case .waiting(let reason): wait = reason.rawValue
        case .paused(let instant): (stage, until) = (.paused, Timestamp(milliseconds: times().milliseconds(of: instant)))
        case .done, .failed, .cancelled, nil: break
        }
        var view = TransferView(
            id: row.id, hex: row.hex, url: row.url, peer: row.peer, file: row.state == .done ? row.finalName ?? row.name : row.name,
            folder: row.folder, state: stage, waitingFor: wait, until: until, reason: row.reason, message: row.error, bytes: row.bytes,
            size: row.size, createdAt: Timestamp(milliseconds: row.createdAt), endedAt: row.endedAt.map { Timestamp(milliseconds: $0) })
        if let link = RemoteLink(row.url) {
            // Also where this machine had another identity then.
            (view.service, view.peer) = (link.remote, self.id)
        } else {
            view.tag = label(of: row.peer).map(PeerTag.init)
        }
        return view
    }
}

extension TransferRow {
    /// Whether the file is in its folder already: of the same name, size and time. Blocks.
    fileprivate var isThere: Bool { FileLook.isThere(HexlistPaths.join(folder, name), size: size, modified: modified) }
}

extension TransferStage {
    fileprivate var stored: StoredTransferState {
        switch self {
        case .waiting, .running, .paused: .waiting
        case .done: .done
        case .failed: .failed
        case .cancelled: .cancelled
        }
    }
}

extension StoredTransferState {
    fileprivate var stage: TransferStage {
        switch self {
        case .waiting: .waiting
        case .done: .done
        case .failed: .failed
        case .cancelled: .cancelled
        }
    }
}

/// Where fetched files go.
enum FetchGoal: Equatable {
    case folder(String)
    case place(PoolPlace)

    /// - Throws: `HexlistError` `badRequest` unless exactly one is named.
    init(_ request: TransferRequest) throws(HexlistError) {
        switch (request.to, request.cache ?? false, request.keep ?? false) {
        case (nil, true, false): self = .place(.pool)
        case (nil, false, true): self = .place(.kept)
        case (let folder?, false, false):
            guard folder.hasPrefix("/"), !folder.utf8.contains(0) else {
                throw HexlistError(.badRequest, "`to` is the absolute path of a folder.")
            }
            self = .folder(folder)
        default: throw HexlistError(.badRequest, "Say where to: one of `to`, `cache` and `keep`.")
        }
    }

    var isFolder: Bool { if case .folder = self { true } else { false } }
}

/// The files that the links of a hex lead to, and the folders that the hexes inside it become.
struct FetchPlan {
    struct File {
        var link: FileLink
        var name: String
        var size: Int64?
        var sha256: [UInt8]?
        /// Milliseconds since 1970.
        var modified: Int64?
        /// The index in `children` of the hex it is in; `nil` for the hex itself.
        var folder: Int?
    }

    private let own: PeerID?
    private(set) var files: [File] = []
    /// Links that lead to no file of a peer.
    private(set) var passedOver = 0
    /// Whether a link to a file of this machine was passed over.
    private(set) var isOwn = false
    /// The path of each hex inside, in the order of `HexContent.children`.
    private var paths: [[String]] = []

    /// - Parameter own: whose links are passed over; `nil` for nobody's.
    init(own: PeerID?) { self.own = own }

    mutating func addAll(of content: HexContent) {
        for link in content.links { add(link, of: content, in: nil) }
        for (index, child) in content.children.enumerated() {
            let name = FileName(content.string(child.hexDescription)).description
            paths.append((child.parent.map { paths[$0] } ?? []) + [name])
            for link in content.childLinks[child.links] { add(link, of: content, in: index) }
        }
    }

    mutating func add(_ content: LinkContent, of hex: HexContent, in folder: Int?) {
        guard content.url.count <= FileLink.maximumBytes, let link = FileLink(hex.string(content.url)), link.peer != own else {
            if content.url.count <= FileLink.maximumBytes, FileLink(hex.string(content.url))?.peer == own { isOwn = true }
            passedOver += 1
            return
        }
        let name =
            switch link.target {
            case .offer(_, let name): name
            case .share(let share, let path): path.names.last ?? share
            }
        var file = File(link: link, name: FileName(name).description, folder: folder)
        if !content.extra.isEmpty, let members = (try? JSONValue(parsing: hex.string(content.extra)))?.members {
            for member in members {
                let isNamed = { (name: String) in member.nameBytes.elementsEqual(name.utf8) }
                if isNamed("size"), let size = member.value.integer, size >= 0 {
                    file.size = size
                } else if isNamed("sha256"), let text = member.value.string, text.utf8.count == 64 {
                    file.sha256 = Hexadecimal.decode(text)
                } else if isNamed("modified"), let time = member.value.string.flatMap({ Timestamp($0) }) {
                    file.modified = time.milliseconds
                }
            }
        }
        files.append(file)
    }

    /// The names of the folders on the way to a file.
    func path(of folder: Int?) -> [String] { folder.map { paths[$0] } ?? [] }

    /// The folders that files go to, each behind the one it is in.
    var folders: [[String]] {
        var seen: Set<[[UInt8]]> = []
        var folders: [[String]] = []
        for file in files {
            let path = path(of: file.folder)
            for count in 1...max(1, path.count) where count <= path.count {
                let part = Array(path.prefix(count))
                if seen.insert(part.map { Array($0.utf8) }).inserted { folders.append(part) }
            }
        }
        return folders
    }
}

/// The folder that files are fetched into, and those made in it.
enum DestinationFolder {
    /// Makes folders in one that is there. What stands there already has to be a folder, and no symbolic link.
    static func make(_ folders: [[String]], in base: String, mask: Int) throws {
        var status = stat()
        guard stat(base, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw HexlistError(
                .badRequest, "\(TerminalText.clean(base, columns: 200)) is no folder.", hint: "`--to` names one that is there.")
        }
        guard access(base, W_OK | X_OK) == 0 else {
            throw HexlistError(
                .badRequest, "\(TerminalText.clean(base, columns: 200)) cannot be written (\(String(cString: strerror(errno)))).")
        }
        for folder in folders {
            let path = ([base] + folder).joined(separator: "/")
            let mode = mode_t(0o777 & ~mask)
            if mkdir(path, mode) == 0 {
                // Whoever else may write there may have put a link in its place.
                let made = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                if made >= 0 {
                    _ = fchmod(made, mode)
                    close(made)
                }
                continue
            }
            let reason = errno
            guard reason == EEXIST, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                throw HexlistError(
                    .badRequest,
                    "The folder \(TerminalText.clean(path, columns: 300)) cannot be made (\(String(cString: strerror(reason)))).",
                    hint: "Fetch into another folder with `--to`.")
            }
        }
    }
}

extension TransferRow {
    /// A row whose link cannot be fetched has failed, with the reason.
    fileprivate func checkingLink() -> TransferRow {
        guard RemoteLink(url) == nil, FileLink(url) == nil else { return self }
        var row = self
        (row.state, row.reason, row.error, row.endedAt) = (.failed, Self.badLink, Self.linkFault(url), createdAt)
        return row
    }

    /// Why a link cannot be fetched, for people.
    static func linkFault(_ url: String) -> String {
        url.utf8.count > FileLink.maximumBytes
            ? "Its path is too long: the link to it has \(url.utf8.count) bytes, and at most \(FileLink.maximumBytes) can be fetched."
            : "Its link does not lead to a file of a peer."
    }
}
