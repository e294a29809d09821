import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle
import UnixSignals

#if canImport(Glibc)
    import Glibc
#endif

/// A part of the daemon that a `ServiceGroup` runs. It has a description, because the group would otherwise make its name from all values
/// that it refers to.
protocol DaemonService: ServiceLifecycle.Service, CustomStringConvertible {}

extension DaemonService {
    var description: String { "\(Self.self)" }
}

/// The run of a daemon after its node has started: serves the API until a signal, then stops the parts of the daemon in order.
struct DaemonRun: Sendable {
    let loader: ConfigurationLoader
    let notifier: SystemdNotifier
    let api: APIContext
    let guestPort: GuestConnectionHandover
    let hooks: Hooks
    let socket: ControlSocket
    let settings: Settings
    let titles: TitleFetcher

    private enum Event: Sendable {
        case listening
        case signal(UnixSignal)
        /// The services of the daemon ended, with the error if one of them failed.
        case ended((any Error)?)
        /// The time for which API requests may continue after SIGTERM is over.
        case graceOver
    }

    private var logger: Logger { api.logger }

    /// Runs until SIGTERM or SIGINT. Stops the node in any case.
    /// - Parameters:
    ///   - group: the event loop of the API socket and of the node.
    ///   - stopLoop: the event loop of the stop timer.
    /// - Throws: `HexlistError` if the API cannot listen or ends unexpectedly.
    func untilStopped(signals: UnixSignalsSequence, group: any EventLoopGroup, stopLoop: any EventLoop) async throws {
        // The buffer is unbounded, but small: every event occurs once, except signals, which only this user can send.
        let (events, eventSink) = AsyncStream.makeStream(of: Event.self)
        let server = SocketService(api: api, settings: settings.api, socket: socket, group: group) { eventSink.yield(.listening) }
        let services = ServiceGroup(
            configuration: .init(
                services: [server, PageService(api: api), FeedService(api: api), GuestService(api: api, port: guestPort), titles],
                logger: quietLogger))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                do {
                    try await services.run()
                    eventSink.yield(.ended(nil))
                } catch {
                    eventSink.yield(.ended(error))
                }
            }
            tasks.addTask {
                for await signal in signals { eventSink.yield(.signal(signal)) }
            }
            tasks.addTask { [api] in
                await LinkOpener(supervisor: api.supervisor, desktop: api.desktop, logger: api.logger).run()
            }
            defer { tasks.cancelAll() }
            try await handle(events, eventSink: eventSink, services: services, stopLoop: stopLoop)
        }
    }

    private func handle(
        _ events: AsyncStream<Event>, eventSink: AsyncStream<Event>.Continuation, services: ServiceGroup,
        stopLoop: any EventLoop
    ) async throws {
        var current = settings
        var isStopping = false
        var stoppingSince = ContinuousClock.now
        var isNodeUp = true
        var failure: HexlistError?
        var watchdog: Scheduled<Void>?
        defer { watchdog?.cancel() }
        loop: for await event in events {
            switch event {
            case .listening:
                logger.notice("hexlistd is ready", metadata: ["socket": "\(socket.path)", "version": "\(ProtocolLimits.appVersion)"])
                notifier.send(.ready)
                await hooks.read(current.hooks)
            case .signal(.sighup) where !isStopping:
                if let new = await reload() { current = new }
            case .signal(.sighup): break
            case .signal where isStopping && ContinuousClock.now - stoppingSince < .seconds(1):
                break  // ignored: `timeout` and shells send a signal twice, to the process and to its group
            case .signal where isStopping:
                logger.warning("stopped by a second signal")
                _exit(EXIT_FAILURE)
            case .signal:
                isStopping = true
                stoppingSince = .now
                notifier.send(.stopping)
                logger.notice("hexlistd is stopping")
                watchdog = stopLoop.scheduleTask(in: Daemon.stopLimit) { [logger] in
                    logger.critical("stopping took too long and was aborted")
                    _exit(EXIT_FAILURE)
                }
                await services.triggerGracefulShutdown()
                stopLoop.scheduleTask(in: TimeAmount(Daemon.apiGrace)) { eventSink.yield(.graceOver) }
                await hooks.stop()
            case .graceOver:
                // Stopping the node ends requests that wait for a delivery outcome, so that the API server can stop.
                isNodeUp = false
                await api.supervisor.stop()
            case .ended(let error):
                if let error {
                    failure = explain(error)
                } else if !isStopping {
                    failure = HexlistError(.internal, "The local API ended unexpectedly.")
                }
                break loop
            }
        }
        await hooks.stop()
        if isNodeUp { await api.supervisor.stop() }
        socket.remove()
        if failure == nil { failure = await api.supervisor.failure }
        if let failure { throw failure }
    }

    /// Reads the configuration again after SIGHUP, applies it, and logs the changed keys that need a restart.
    /// - Returns: the new settings; `nil` if the configuration has an error, so that nothing was changed.
    private func reload() async -> Settings? {
        do {
            let new = try loader.load()
            await api.supervisor.reconfigure(new.node)
            await hooks.read(new.hooks)
            let waiting = api.configuration.took(new)
            if waiting.isEmpty {
                logger.notice("configuration reloaded")
            } else {
                logger.notice(
                    "configuration reloaded; some changes need a restart", metadata: ["keys": "\(waiting.joined(separator: ", "))"])
            }
            return new
        } catch {
            api.configuration.refused(error)
            logger.error(
                "configuration not changed", metadata: ["error": "\(error.message)", "hint": "\(error.hint ?? "")"])
            return nil
        }
    }

    private func explain(_ error: any Error) -> HexlistError {
        if let error = error as? HexlistError { return error }
        return HexlistError(
            .internal, "The local API failed on \(socket.path): \(error)", hint: "Name another socket with --socket, or check its folder."
        )
    }

    /// Returns the logger for ServiceLifecycle, without its informational messages.
    private var quietLogger: Logger {
        var logger = logger
        logger.logLevel = max(logger.logLevel, .warning)
        return logger
    }
}
