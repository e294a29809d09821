import HexlistModel
public import NIOCore
import NIOPosix

extension PeerTransport {
    /// Resolves a host name to the addresses that a dial of the name would try.
    public func addresses(of name: String) -> EventLoopFuture<Result<[String], DialError>> {
        let promise = eventLoop.makePromise(of: Result<[String], DialError>.self)
        let state = state
        eventLoop.execute {
            state.value.resolver.resolve(name) { outcome in promise.succeed(outcome.map { $0.map(\.description) }) }
        }
        return promise.futureResult
    }

    /// Measures the time that a TCP connection takes to open. The connection is closed immediately.
    /// - Parameter target: a target with a numeric address.
    public func connectTime(_ target: DialTarget) -> EventLoopFuture<Result<Duration, DialError>> {
        guard let address = IPAddress(scoped: target.host, interface: target.interface)?.socketAddress(port: target.port), target.port > 0
        else {
            return eventLoop.makeSucceededFuture(.failure(target.invalidHostError))
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
