import CAvahi
import Glibc
import HexlistDiscovery
import HexlistModel
import Logging

/// The event loop of Avahi's thread, which owns the client and all objects created from it. `run` is the body of the thread; other threads
/// do not access the properties.
///
/// Callbacks only record events. Objects are created and freed, and the daemon is called, after the callback has returned, so that nothing
/// is freed inside its own callback.
final class AvahiLoop {
    private let mailbox: AvahiMailbox
    let domains: [String]
    let serviceType: String
    let logger: Logger
    private let events: @Sendable (DiscoveryEvent) -> Void
    private let whenFinished: @Sendable () -> Void

    private var poll: OpaquePointer?
    var client: OpaquePointer?
    /// The last state change of the client, until it is handled.
    private var pendingClientState: AvahiClientState?
    /// The reason why the client failed, for the user.
    private var clientFailure: String?
    var isServerRunning = false
    private var reported: BackendState?
    private var reconnectAt: ContinuousClock.Instant?
    /// Consecutive failed attempts to create a client.
    private var reconnects = 0
    /// Back-off between attempts to create a client: 1, 2, 4 … 30 s.
    private static let reconnectBackoff = Backoff(from: .seconds(1), to: .seconds(30))
    /// Whether browsing has started with a running daemon since this client was created.
    private var hasBrowsed = false

    private var browsers: [OpaquePointer] = []
    /// The currently announced records, at most `announcedLimit`. avahi-daemon caches at most 4 096 records per interface.
    var announced: Set<Record> = []
    static let announcedLimit = 32_768
    var resolvers: [Record: OpaquePointer] = [:]
    var resolverRecords: [OpaquePointer: Record] = [:]
    /// Resolvers of withdrawn records, to be freed after the browser's callback.
    var retiredResolvers: [OpaquePointer] = []
    /// Failed resolvers that are still wanted: the time of the next attempt, and the number of consecutive failures.
    var resolverRetries: [Record: (at: ContinuousClock.Instant, failures: Int)] = [:]

    var publication = AvahiPublication()

    init(
        mailbox: AvahiMailbox, domains: [String], serviceType: String, logger: Logger,
        events: @escaping @Sendable (DiscoveryEvent) -> Void, whenFinished: @escaping @Sendable () -> Void
    ) {
        self.mailbox = mailbox
        self.domains = domains
        self.serviceType = serviceType
        self.logger = logger
        self.events = events
        self.whenFinished = whenFinished
    }

    /// The `userdata` pointer of C callbacks. It stays valid while callbacks can occur, because the loop outlives its client.
    var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    func run() {
        defer { whenFinished() }
        guard let poll = avahi_simple_poll_new(), let api = avahi_simple_poll_get(poll) else {
            return report(.unavailable("Avahi's event loop cannot be created: this process has reached its limit of open files."))
        }
        self.poll = poll
        defer {
            dropClient()
            avahi_simple_poll_free(poll)
        }
        _ = api.pointee.watch_new?(
            api, mailbox.descriptor, AVAHI_WATCH_IN, { _, descriptor, _, _ in hexlist_empty(descriptor) }, context)
        reconnectAt = .now
        while true {
            let requests = mailbox.take()
            if requests.isStopped { return }
            connectIfDue(api)
            handleClientState()
            freeRetiredResolvers()
            handle(requests)
            retryResolvers()
            publishIfDue()
            // If one of the calls above failed, the failure is handled before waiting.
            guard pendingClientState == nil else { continue }
            if avahi_simple_poll_iterate(poll, millisecondsToWait()) != 0 { delayAfterPollFailure() }
        }
    }

    static func from(_ context: UnsafeMutableRawPointer?) -> AvahiLoop? {
        context.map { Unmanaged<AvahiLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    func send(_ event: DiscoveryEvent) { events(event) }

    func report(_ state: BackendState) {
        guard state != reported else { return }
        reported = state
        events(.backend(state))
    }

    // MARK: - Waiting

    /// Time until the next deadline, at most a minute; -1 to wait for an event without a limit.
    private func millisecondsToWait() -> Int32 {
        var deadlines = resolverRetries.values.map(\.at)
        if let reconnectAt { deadlines.append(reconnectAt) }
        if let retryAt = publication.retryAt { deadlines.append(retryAt) }
        guard let first = deadlines.min() else { return -1 }
        let milliseconds = ((first - .now) / .milliseconds(1)).rounded(.up)
        return Int32(min(max(milliseconds, 0), 60_000))
    }

    /// Waits up to a second, or until `stop`, after poll(2) failed for lack of memory, to avoid a busy loop.
    private func delayAfterPollFailure() {
        var descriptor = pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0)
        _ = Glibc.poll(&descriptor, 1, 1_000)
    }

    // MARK: - Client

    private func connectIfDue(_ api: UnsafePointer<AvahiPoll>) {
        guard client == nil, let reconnectAt, reconnectAt <= .now else { return }
        self.reconnectAt = nil
        var error: Int32 = 0
        client = avahi_client_new(
            api, AVAHI_CLIENT_NO_FAIL,
            { client, state, context in  // the first call comes from inside avahi_client_new
                guard let client, let loop = AvahiLoop.from(context) else { return }
                loop.pendingClientState = state
                if state == AVAHI_CLIENT_FAILURE { loop.clientFailure = AvahiLoop.text(avahi_client_errno(client)) }
            }, context, &error)
        guard client == nil else { return }
        pendingClientState = nil
        let cause = Self.text(error)
        logger.debug("avahi client not made", metadata: ["error.message": "\(cause)"])
        failed("The system's D-Bus cannot be reached (\(cause)). Start it, and avahi-daemon: `systemctl start dbus avahi-daemon`.")
    }

    private func handleClientState() {
        guard let news = pendingClientState else { return }
        pendingClientState = nil
        switch news {
        case AVAHI_CLIENT_S_RUNNING:
            isServerRunning = true
            publication.isDue = true
            guard browse() else { return }
            hasBrowsed = true
            report(.running)
        case AVAHI_CLIENT_S_REGISTERING, AVAHI_CLIENT_S_COLLISION:
            // The host name is being registered; announcements under the old name are withdrawn.
            isServerRunning = false
            publication.reset()
            if browse() { report(.running) }
        case AVAHI_CLIENT_CONNECTING:
            report(.unavailable("avahi-daemon is not running. Start it: `systemctl start avahi-daemon`."))
        case AVAHI_CLIENT_FAILURE:
            failed(
                "The connection to avahi-daemon broke (\(clientFailure ?? "no reason given")). It is opened again as soon as avahi-daemon runs."
            )
        default:
            break  // a state unknown to this version of the library
        }
    }

    /// Drops the client, reports the failure, and schedules the next attempt.
    func failed(_ message: String) {
        // If this client has worked, the daemon was probably restarted, and a new client is created after 500 ms. Otherwise the back-off
        // grows.
        reconnects = hasBrowsed ? 0 : reconnects + 1
        let delay = hasBrowsed ? .milliseconds(500) : Self.reconnectBackoff.pause(after: reconnects)
        dropClient()
        reconnectAt = .now + delay
        reported = nil  // each failure withdraws all records, so it is reported even right after another one
        report(.unavailable(message))
    }

    private func dropClient() {
        browsers = []
        announced = []
        resolvers = [:]
        resolverRecords = [:]
        retiredResolvers = []
        resolverRetries = [:]
        publication.forgetGroup()
        isServerRunning = false
        hasBrowsed = false
        pendingClientState = nil
        if let client { avahi_client_free(client) }  // frees all that was made from it; closes the bus first, so it does not block
        client = nil
    }

    // MARK: - Browsing

    /// - Returns: whether all browsers exist.
    private func browse() -> Bool {
        guard browsers.isEmpty else { return true }
        for domain in domains {
            let browser = avahi_service_browser_new(
                client, Self.anyInterface, Self.anyProtocol, serviceType, domain, AvahiLookupFlags(rawValue: 0),
                { _, interface, `protocol`, event, name, type, domain, _, context in
                    guard let loop = AvahiLoop.from(context) else { return }
                    guard event != AVAHI_BROWSER_FAILURE else {
                        loop.pendingClientState = AVAHI_CLIENT_FAILURE
                        loop.clientFailure = loop.client.map { AvahiLoop.text(avahi_client_errno($0)) }
                        return
                    }
                    guard let name, let type, let domain else { return }  // the events "cache exhausted" and "all for now"
                    let key = InstanceKey(name: String(cString: name), type: String(cString: type), domain: String(cString: domain))
                    let record = Record(key: key, interface: interface, ipv6: `protocol` == AVAHI_PROTO_INET6)
                    if event == AVAHI_BROWSER_NEW {
                        loop.recordAppeared(record)
                    } else if event == AVAHI_BROWSER_REMOVE {
                        loop.recordWithdrawn(record)
                    }
                }, context)
            guard let browser else {
                failed("avahi-daemon does not browse \(domain) (\(clientError)).")
                return false
            }
            browsers.append(browser)
        }
        return true
    }

    private func recordAppeared(_ record: Record) {
        guard announced.count < Self.announcedLimit, announced.insert(record).inserted else { return }
        send(.appeared(record, interfaceName: Self.interfaceName(record.interface)))
    }

    private func recordWithdrawn(_ record: Record) {
        guard announced.remove(record) != nil else { return }
        // Closes the resolver immediately instead of with a request in the mailbox. If the record appeared again before the request is
        // handled, the request would close the new resolver.
        retireResolver(record)
        send(.withdrawn(record))
    }

    // MARK: - Helpers

    private func handle(_ requests: AvahiMailbox.Contents) {
        if let announcement = requests.announcement { publication.replace(announcement) }
        for (record, isOpen) in requests.resolvers {
            if isOpen { openResolver(record) } else { closeResolver(record) }
        }
    }

    var clientError: String { client.map { Self.text(avahi_client_errno($0)) } ?? "no client" }

    /// The name of an interface; `nil` if it does not exist any more.
    private static func interfaceName(_ index: Int32) -> String? {
        guard let index = UInt32(exactly: index) else { return nil }
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard if_indextoname(index, &name) != nil else { return nil }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    static func text(_ error: Int32) -> String {
        avahi_strerror(error).map { String(cString: $0) } ?? "error \(error)"
    }

    static let anyInterface = AvahiIfIndex(-1)  // AVAHI_IF_UNSPEC
    static let anyProtocol = AvahiProtocol(-1)  // AVAHI_PROTO_UNSPEC
}
