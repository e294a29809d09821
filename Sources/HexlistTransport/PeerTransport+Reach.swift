import HexlistModel
public import NIOCore
import NIOPosix

extension PeerTransport {
    /// Looks up the addresses of a host's name: those that a dial would try.
    public func addresses(of name: String) -> EventLoopFuture<Result<[String], DialError>> {
        let promise = eventLoop.makePromise(of: Result<[String], DialError>.self)
        let state = state
        eventLoop.execute {
            state.value.resolver.resolve(name) { outcome in promise.succeed(outcome.map { $0.map(\.description) }) }
        }
        return promise.futureResult
    }

    /// Opens a TCP connection and closes it, to find out whether and how fast something answers.
    /// - Parameter target: a numeric target.
    public func connectTime(_ target: DialTarget) -> EventLoopFuture<Result<Duration, DialError>> {
        guard let address = IPAddress(scoped: target.host, interface: target.interface)?.socketAddress(port: target.port), target.port > 0
        else {
            return eventLoop.makeSucceededFuture(.failure(target.isNowhere))
        }
        let begun = ContinuousClock.now
        return ClientBootstrap(group: eventLoop).connectTimeout(DialAttempt.time).connect(to: address)
            .map { channel in
                let time = ContinuousClock.now - begun
                channel.close(promise: nil)
                return .success(time)
            }
            .flatMapErrorThrowing { .failure(DialAttempt.classify($0)) }
    }
}
