import HexlistAPI
import HexlistModel
import HexlistStore
import HexlistTransport
import Logging
import NIOCore
import ServiceLifecycle

/// Reads the titles of the pages of links that were added to My Hexlist without a description, and stores them as descriptions. Sends
/// requests to allowed addresses only.
struct TitleFetcher: DaemonService {
    /// Maximum number of titles that are read at the same time.
    static let concurrency = 3
    /// Maximum number of waiting links per read of the store.
    private static let batch = 60

    let store: HexStore
    let client: WebClient
    let signal: TitleSignal
    /// Returns whether titles are to be read (the setting `titles`).
    let isOn: @Sendable () -> Bool
    /// Returns whether requests may be sent to an address.
    var isAllowed: @Sendable (IPAddress) -> Bool = { $0.isPublic }
    /// Maximum total time of the requests for one title, not including DNS look-ups.
    var time = TimeAmount.seconds(2)
    let logger: Logger
    /// Identifies this run of the daemon, which tries each link at most once.
    private let runID = Int64.random(in: 1...Int64.max)

    func run() async {
        await cancelWhenGracefulShutdown {
            for await _ in signal.stream {
                do {
                    while isOn() {
                        let links = try await store.read { try $0.wantedTitles(notTriedIn: runID, limit: Self.batch) }
                        guard !links.isEmpty else { break }
                        try await fetch(links)
                    }
                } catch is CancellationError {
                    return
                } catch {
                    // The links stay in the store until the next signal or start.
                    logger.warning("titles of links cannot be stored", metadata: ["error": "\(error)"])
                }
            }
        }
    }

    private var now: Int64 { Timestamp.now.milliseconds }

    private func fetch(_ links: [PendingTitle]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for (index, link) in links.enumerated() {
                if index >= Self.concurrency { try await tasks.next() }
                tasks.addTask {
                    guard try await store.beginTitleAttempt(link, in: runID) else { return }
                    let result = await result(of: link.url)
                    try Task.checkCancellation()
                    switch result {
                    case .title(let title): try await store.finishTitle(link, title: title, at: now)
                    case .none: try await store.finishTitle(link, title: nil, at: now)
                    case .unavailable: break  // tried again after the next start
                    }
                }
            }
            try await tasks.waitForAll()
        }
    }

    /// Requests a page, follows its redirects, and returns the result of the search for its title.
    func result(of url: String) async -> TitleRequestSequence.Result {
        guard var fetch = TitleRequestSequence(url) else { return .none }
        var target = fetch.first
        var left = time
        do {
            while true {
                let addresses = try await client.addresses(of: target, allowing: isAllowed)
                let start = NIODeadline.now()
                let response = try await client.send(.get, target, toOneOf: addresses, until: start + left, reader: TitleResponse())
                left = left - (.now() - start)
                switch fetch.step(after: response) {
                case .request(let next): target = next
                case .end(let result): return result
                }
            }
        } catch {
            return (error as? WebFault).map(TitleRequestSequence.result) ?? .unavailable
        }
    }
}

/// A signal that links wait for their titles. It is set at the start of the daemon, for links that waited when it stopped.
final class TitleSignal: Sendable {
    let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        continuation.yield()
    }

    func send() { continuation.yield() }
}
