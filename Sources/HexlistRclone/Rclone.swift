public import HexlistFiles
import HexlistAPI
import HexlistJSON
import HexlistModel
public import NIOCore
import Synchronization

/// The rclone remotes of this machine.
public final class Rclone: Sendable {
    static let maximumRemotes = 1_000

    /// Delay before rclone may be started again after a failed start.
    private static let startRetryDelay = Duration.seconds(5)

    private let settings: RcloneSettings
    let process: RcloneProcess
    private let sleep: @Sendable (Duration) async throws -> Void
    private let listings = ListingCache()
    private let state = Mutex(State())

    private struct State {
        /// The request scheduler of each remote, by the bytes of the remote's name.
        var schedulers: [[UInt8]: RequestScheduler] = [:]
        /// The remotes, and the versions of all possible configuration files when the remotes were read.
        var cached: (remotes: [RcloneRemote], files: [LocalFileVersion])?
        /// The error of the last failed start. Until `until`, requests fail with it instead of starting rclone again.
        var failedStart: (error: HexlistError, until: ContinuousClock.Instant)?
    }

    /// - Parameters:
    ///   - group: event loops for the connections to rclone.
    ///   - sleep: waits between two attempts; injected for tests.
    public init(
        settings: RcloneSettings, group: any EventLoopGroup,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        self.settings = settings
        self.sleep = sleep
        process = RcloneProcess(settings: settings, group: group)
    }

    /// Runs the rclone process whenever a request needs it, until the task is cancelled.
    public func run() async { await process.run() }

    /// Returns all remotes, in the order of the configuration. Calls rclone only if the configuration changed.
    /// - Throws: `HexlistError` if rclone is missing or cannot be used.
    public func remotes() async throws -> [RcloneRemote] {
        guard settings.program != nil else { throw RcloneFault.missing.error() }
        let (cached, failedStart) = state.withLock { ($0.cached, $0.failedStart) }
        if let path = settings.configuration, !LocalFileVersion(path).exists {
            throw RcloneFault.noConfiguration(path).error(command: settings.command)
        }
        let files = settings.configurationFiles.map(LocalFileVersion.init)
        if let cached, files == cached.files { return cached.remotes }
        if let failedStart, failedStart.until > .now { throw failedStart.error }
        do {
            let remotes = try await readRemotes()
            state.withLock { state in
                state.cached = (remotes, files)
                state.failedStart = nil
                let names = Set(remotes.map { Array($0.name.utf8) })
                state.schedulers = state.schedulers.filter { names.contains($0.key) || $0.value.count > 0 }
            }
            return remotes
        } catch let fault as RcloneFault {
            let error = fault.error(command: settings.command)
            state.withLock { $0.failedStart = (error, .now + Self.startRetryDelay) }
            throw error
        }
    }

    /// Copies a file of a remote into a local folder, replacing an existing file. Cancelling the task cancels the copy.
    /// - Parameter file: the name of the local file. Consists of letters, digits and dots only, which have no special meaning for rclone.
    /// - Throws: `RemoteFault`, `CancellationError`.
    public func copy(_ link: RemoteLink, to folder: String, as file: String) async throws {
        let remotes: [RcloneRemote]
        do {
            remotes = try await self.remotes()
        } catch let error as HexlistError {
            throw RemoteFault(.interrupted(progressed: false), "rclone", error)
        }
        guard let remote = remotes.first(where: { PeerTextComparison.areEqual($0.name, link.remote) }) else {
            let name = TerminalText.clean(link.remote, columns: 60)
            throw RemoteFault(.final, "notFound", HexlistError(.notFound, "rclone no longer has a remote \(name)."))
        }
        try await remote.copy(link.path, to: folder, as: file)
    }

    private func readRemotes() async throws -> [RcloneRemote] {
        let answer = try await process.call("config/listremotes", limit: 1 << 20) { _ in }
        let names = (answer["remotes"]?.elements ?? []).compactMap(\.string).filter(Self.isName).prefix(Self.maximumRemotes)
        var remotes: [RcloneRemote] = []
        for name in names {
            // Only the type is read, because the other members contain secrets.
            let kind = try await process.call("config/get", limit: 1 << 20) { $0.member("name", name) }["type"]?.string ?? ""
            let isKind = (1...64).contains(kind.utf8.count) && kind.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-_ ".utf8.contains($0) }
            remotes.append(
                RcloneRemote(
                    name: name, serviceName: Self.serviceName(of: name, among: names), kind: isKind ? kind : "rclone",
                    command: settings.command, process: process, scheduler: scheduler(name), listings: listings))
        }
        return remotes
    }

    /// Returns the service name of a remote: its own name, prefixed with `rclone.` if Hexlist uses that name for own shares.
    /// - Parameter names: the unique names of all remotes.
    static func serviceName(of name: String, among names: some Collection<String>) -> String {
        guard PeerTextComparison.areEqual(name, LocalAPI.ownService) else { return name }
        var free = LocalAPI.remotePrefix + name
        while names.contains(where: { PeerTextComparison.areEqual($0, free) }) { free = LocalAPI.remotePrefix + free }
        return free
    }

    /// Whether a text can be used as the name of a remote, and rclone cannot mistake it for a connection string or a path.
    static func isName(_ text: String) -> Bool {
        (1...200).contains(text.utf8.count) && text.utf8.first != UInt8(ascii: "-")
            && !text.utf8.contains { $0 < 0x20 || $0 == 0x7F || ":,/\\\"'`".utf8.contains($0) }
    }

    private func scheduler(_ name: String) -> RequestScheduler {
        state.withLock { state in
            let key = Array(name.utf8)
            if let scheduler = state.schedulers[key] { return scheduler }
            let scheduler = RequestScheduler(sleep: sleep)
            state.schedulers[key] = scheduler
            return scheduler
        }
    }
}
