public import HexlistFiles
import HexlistAPI
import HexlistJSON
import HexlistModel
public import NIOCore
import Synchronization

/// The remotes of rclone on this machine.
public final class Rclone: Sendable {
    /// The most remotes.
    static let mostRemotes = 1_000

    /// The time for which a start that failed is not repeated.
    private static let refusal = Duration.seconds(5)

    private let settings: RcloneSettings
    let process: RcloneProcess
    private let sleep: @Sendable (Duration) async throws -> Void
    private let listings = ListingCache()
    private let state = Mutex(State())

    private struct State {
        /// The queue of each remote, by the bytes of its name.
        var desks: [[UInt8]: RequestScheduler] = [:]
        /// The remotes, as they stood when the files that may be the configuration had these marks.
        var known: (remotes: [RcloneRemote], files: [FileVersion])?
        /// Why it could not be used lately, so that it is not started for each question about something else.
        var refused: (error: HexlistError, until: ContinuousClock.Instant)?
    }

    /// - Parameters:
    ///   - group: the event loops of the connections to rclone.
    ///   - sleep: waits for the time between two attempts.
    public init(
        settings: RcloneSettings, group: any EventLoopGroup,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        self.settings = settings
        self.sleep = sleep
        process = RcloneProcess(settings: settings, group: group)
    }

    /// Runs rclone when it is needed, until the task is cancelled.
    public func run() async { await process.run() }

    /// All remotes, in the order of the configuration. Asks rclone only if its configuration changed.
    /// - Throws: `HexlistError` where rclone is missing, or cannot be used.
    public func remotes() async throws -> [RcloneRemote] {
        guard settings.program != nil else { throw RcloneFault.missing.error() }
        let (known, refused) = state.withLock { ($0.known, $0.refused) }
        if let path = settings.configuration, !FileVersion(path).isThere {
            throw RcloneFault.noConfiguration(path).error(command: settings.command)
        }
        let files = settings.configurationFiles.map(FileVersion.init)
        if let known, files == known.files { return known.remotes }
        if let refused, refused.until > .now { throw refused.error }
        do {
            let remotes = try await readRemotes()
            state.withLock { state in
                state.known = (remotes, files)
                state.refused = nil
                let names = Set(remotes.map { Array($0.name.utf8) })
                state.desks = state.desks.filter { names.contains($0.key) || $0.value.count > 0 }
            }
            return remotes
        } catch let fault as RcloneFault {
            let error = fault.error(command: settings.command)
            state.withLock { $0.refused = (error, .now + Self.refusal) }
            throw error
        }
    }

    /// Writes a file of a remote into a folder of this machine, in place of what is there of that name. Cancelling the task ends that.
    /// - Parameter file: letters, digits and dots, which rclone reads as they are.
    /// - Throws: `RemoteFault`; `CancellationError`.
    public func copy(_ link: RemoteLink, to folder: String, as file: String) async throws {
        let remotes: [RcloneRemote]
        do {
            remotes = try await self.remotes()
        } catch let error as HexlistError {
            throw RemoteFault(.interrupted(progressed: false), "rclone", error)
        }
        guard let remote = remotes.first(where: { PeerText.areEqual($0.name, link.remote) }) else {
            let name = TerminalText.clean(link.remote, columns: 60)
            throw RemoteFault(.final, "notFound", HexlistError(.notFound, "rclone has no remote \(name) any more."))
        }
        try await remote.copy(link.path, to: folder, as: file)
    }

    private func readRemotes() async throws -> [RcloneRemote] {
        let answer = try await process.call("config/listremotes", limit: 1 << 20) { _ in }
        let names = (answer["remotes"]?.elements ?? []).compactMap(\.string).filter(Self.isName).prefix(Self.mostRemotes)
        var remotes: [RcloneRemote] = []
        for name in names {
            // The other members are secrets, and not kept.
            let kind = try await process.call("config/get", limit: 1 << 20) { $0.member("name", name) }["type"]?.string ?? ""
            let isKind = (1...64).contains(kind.utf8.count) && kind.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-_ ".utf8.contains($0) }
            remotes.append(
                RcloneRemote(
                    name: name, serviceName: Self.serviceName(of: name, among: names), kind: isKind ? kind : "rclone",
                    command: settings.command, process: process, desk: desk(name), listings: listings))
        }
        return remotes
    }

    /// The name of a remote as a service: its own, with `rclone.` before it if Hexlist uses that name itself.
    /// - Parameter names: those of all remotes; no two have one name.
    static func serviceName(of name: String, among names: some Collection<String>) -> String {
        guard PeerText.areEqual(name, LocalAPI.ownService) else { return name }
        var free = LocalAPI.remotePrefix + name
        while names.contains(where: { PeerText.areEqual($0, free) }) { free = LocalAPI.remotePrefix + free }
        return free
    }

    /// Whether a text names a remote of the configuration and cannot be read as anything else: as a connection string, or a path.
    static func isName(_ text: String) -> Bool {
        (1...200).contains(text.utf8.count) && text.utf8.first != UInt8(ascii: "-")
            && !text.utf8.contains { $0 < 0x20 || $0 == 0x7F || ":,/\\\"'`".utf8.contains($0) }
    }

    private func desk(_ name: String) -> RequestScheduler {
        state.withLock { state in
            let key = Array(name.utf8)
            if let desk = state.desks[key] { return desk }
            let desk = RequestScheduler(sleep: sleep)
            state.desks[key] = desk
            return desk
        }
    }
}
