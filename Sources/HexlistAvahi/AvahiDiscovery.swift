import CAvahi
import Glibc
public import HexlistDiscovery
public import HexlistModel
public import Logging
import Synchronization

/// mDNS discovery through avahi-daemon.
///
/// Calls of libavahi-client are blocking D-Bus calls that take up to 25 s if avahi-daemon hangs. So one dedicated thread owns the client
/// and its objects; other threads leave requests in its mailbox and never wait. The client is recreated when avahi-daemon or the bus goes
/// away, with a back-off of 1 to 30 s while there is no bus.
public final class AvahiDiscovery: PeerDiscovery {
    /// Maximum time `stop` waits for the thread, which a hung daemon may block. The announcement is then withdrawn when the process exits.
    private static let stopTimeout: Duration = .seconds(3)

    private let domains: [String]
    private let serviceType: String
    private let logger: Logger

    private enum State: Sendable {
        case fresh
        case running(AvahiMailbox)
        /// The thread is ending or has ended.
        case stopped
    }
    private struct Shared: Sendable {
        var state = State.fresh
        var isFinished = false
        var lastWaiter = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    }
    private let shared = Mutex(Shared())

    /// - Parameters:
    ///   - domains: the domains to browse. The announcement is always published in `local`.
    ///   - logger: silent by default.
    public init(
        domains: [String] = ["local"], serviceType: String = ProtocolLimits.serviceType,
        logger: Logger = Logger(label: "avahi") { _ in SwiftLogNoOpLogHandler() }
    ) {
        self.domains = domains
        self.serviceType = serviceType
        self.logger = logger
    }

    public func start(publishing announcement: ServiceAnnouncement?, events: @escaping @Sendable (DiscoveryEvent) -> Void) {
        let mailbox = AvahiMailbox()
        let isFirst = shared.withLock { shared in
            switch shared.state {
            case .fresh:
                shared.state = mailbox.map(State.running) ?? .stopped
                shared.isFinished = mailbox == nil
                return true
            case .running, .stopped: return false
            }
        }
        guard isFirst else { return }
        guard let mailbox else { return events(.backend(.unavailable(Self.noResources))) }
        mailbox.put { $0.announcement = .some(announcement) }
        let loop = AvahiLoop(
            mailbox: mailbox, domains: domains, serviceType: serviceType, logger: logger, events: events,
            whenFinished: { [self] in finished() })
        let box = Unmanaged.passRetained(loop)
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                hexlist_name_thread("avahi")
                Unmanaged<AvahiLoop>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, box.toOpaque())
        guard result == 0 else {
            box.release()
            finished()
            return events(.backend(.unavailable(Self.noResources)))
        }
        pthread_detach(thread)
    }

    public func publish(_ announcement: ServiceAnnouncement?) {
        mailbox?.put { $0.announcement = .some(announcement) }
    }

    public func resolve(_ record: Record, open: Bool) {
        mailbox?.put { $0.resolvers[record] = open }
    }

    public func stop() async {
        let mailbox = shared.withLock { shared -> AvahiMailbox? in
            defer { shared.state = .stopped }
            switch shared.state {
            case .running(let mailbox): return mailbox
            case .fresh:
                shared.isFinished = true
                return nil
            case .stopped: return nil
            }
        }
        mailbox?.put { $0.isStopped = true }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.waitUntilFinished() }
            group.addTask { try? await Task.sleep(for: Self.stopTimeout) }
            await group.next()
            group.cancelAll()
        }
    }

    private static let noResources = "Avahi's thread cannot be created: this process has reached its limit of open files or threads."

    private var mailbox: AvahiMailbox? {
        shared.withLock { shared in
            switch shared.state {
            case .running(let mailbox): mailbox
            case .fresh, .stopped: nil
            }
        }
    }

    private func finished() {
        let waiters = shared.withLock { shared in
            shared.state = .stopped
            shared.isFinished = true
            defer { shared.waiters = [:] }
            return shared.waiters
        }
        for waiter in waiters.values { waiter.resume() }
    }

    private func waitUntilFinished() async {
        let number = shared.withLock { shared in
            shared.lastWaiter += 1
            return shared.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = shared.withLock { shared in
                    // If the task was cancelled before it waited, its cancellation handler has already run, and nothing would resume the
                    // continuation later.
                    if shared.isFinished || Task.isCancelled { return true }
                    shared.waiters[number] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            shared.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}
