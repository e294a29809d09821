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

/// A daemon whose node is up: answers on its socket until it is told to stop, then ends in order.
struct DaemonRun: Sendable {
    let loader: ConfigurationLoader
    let notifier: SystemdNotifier
    let api: APIContext
    let hooks: Hooks
    let socket: ControlSocket
    let settings: Settings

    private enum Happening: Sendable {
        case listening
        case signal(UnixSignal)
        /// The API ended, with an error if it failed.
        case ended((any Error)?)
        /// The time of requests under way is over.
        case graceOver
    }

    private var logger: Logger { api.logger }

    /// Runs until the daemon is told to stop. Stops the node in any case.
    /// - Parameters:
    ///   - group: the event loop of the connections to the API's socket: the node's.
    ///   - stopLoop: the event loop that times the stop.
    /// - Throws: `HexlistError` where the API cannot listen, or ended by itself.
    func untilStopped(signals: UnixSignalsSequence, group: any EventLoopGroup, stopLoop: any EventLoop) async throws {
        // Bounded by what happens once: listening, ended, grace, and signals, which the user sends.
        let (happenings, happened) = AsyncStream.makeStream(of: Happening.self)
        let server = SocketService(api: api, settings: settings.api, socket: socket, group: group) { happened.yield(.listening) }
        let services = ServiceGroup(
            configuration: .init(services: [server, PageService(api: api)], logger: quietLogger))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                do {
                    try await services.run()
                    happened.yield(.ended(nil))
                } catch {
                    happened.yield(.ended(error))
                }
            }
            tasks.addTask {
                for await signal in signals { happened.yield(.signal(signal)) }
            }
            defer { tasks.cancelAll() }
            try await handle(happenings, happened: happened, services: services, stopLoop: stopLoop)
        }
    }

    private func handle(
        _ happenings: AsyncStream<Happening>, happened: AsyncStream<Happening>.Continuation, services: ServiceGroup,
        stopLoop: any EventLoop
    ) async throws {
        var current = settings
        var isStopping = false
        var stoppingSince = ContinuousClock.now
        var isNodeUp = true
        var failure: HexlistError?
        var watchdog: Scheduled<Void>?
        defer { watchdog?.cancel() }
        loop: for await happening in happenings {
            switch happening {
            case .listening:
                logger.notice("hexlistd is ready", metadata: ["socket": "\(socket.path)", "version": "\(ProtocolLimits.appVersion)"])
                notifier.tell(.ready)
                await hooks.read(current.hooks)
            case .signal(.sighup) where !isStopping:
                if let new = await reload() { current = new }
            case .signal(.sighup): break
            case .signal where isStopping && ContinuousClock.now - stoppingSince < .seconds(1):
                break  // `timeout` and shells tell the process and then its group: that is one wish
            case .signal where isStopping:
                logger.warning("stopped by a second signal")
                _exit(EXIT_FAILURE)
            case .signal:
                isStopping = true
                stoppingSince = .now
                notifier.tell(.stopping)
                logger.notice("hexlistd is stopping")
                watchdog = stopLoop.scheduleTask(in: Daemon.stopLimit) { [logger] in
                    logger.critical("stopping took too long and was cut off")
                    _exit(EXIT_FAILURE)
                }
                await services.triggerGracefulShutdown()
                stopLoop.scheduleTask(in: TimeAmount(Daemon.apiGrace)) { happened.yield(.graceOver) }
                await hooks.stop()
            case .graceOver:
                // Who still waits for an outcome is told where it stands, and the API can end.
                isNodeUp = false
                await api.keeper.stop()
            case .ended(let error):
                if let error {
                    failure = explain(error)
                } else if !isStopping {
                    failure = HexlistError(.internal, "The local API ended by itself.")
                }
                break loop
            }
        }
        await hooks.stop()
        if isNodeUp { await api.keeper.stop() }
        socket.remove()
        if failure == nil { failure = await api.keeper.failure }
        if let failure { throw failure }
    }

    /// SIGHUP: what can be changed is, and what cannot is said. A file with a mistake changes nothing.
    private func reload() async -> Settings? {
        do {
            let new = try loader.load()
            await api.keeper.reconfigure(new.node)
            await hooks.read(new.hooks)
            let waiting = api.configuration.took(new)
            if waiting.isEmpty {
                logger.notice("configuration read again")
            } else {
                logger.notice(
                    "configuration read again; some of it needs a restart", metadata: ["keys": "\(waiting.joined(separator: ", "))"])
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
            .internal, "The local API failed on \(socket.path): \(error)", hint: "Name another socket with --socket, or look at its folder."
        )
    }

    /// ServiceLifecycle tells each step; only what goes wrong is of interest.
    private var quietLogger: Logger {
        var logger = logger
        logger.logLevel = max(logger.logLevel, .warning)
        return logger
    }
}
