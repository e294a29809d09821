public import NIOCore

/// While another node takes this one's place, with another identity.
extension Node {
    /// Sends nothing new, and waits for what is on its way to be answered, so that a row is not sent once under the old identity and
    /// again under the new one.
    public func drain(for patience: TimeAmount = .seconds(5)) async {
        _ = await eventLoop.within(patience, otherwise: false) { done in deliveries.drain { done(true) } }
        deliveries.stopWaitingToDrain()
    }

    /// Takes `drain` back.
    public func resume() { deliveries.resume(self) }
}
