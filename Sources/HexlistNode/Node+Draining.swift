public import NIOCore

/// While another node takes this one's place, with another identity.
enum Draining {
    /// Until nothing that was sent is unanswered: then it is called.
    case waiting(() -> Void)
    /// Nothing is waited for, and nothing is sent.
    case silent
}

extension Node {
    /// Sends nothing new, and waits for what is on its way to be answered, so that a row is not sent once under the old identity and
    /// again under the new one.
    public func drain(for patience: TimeAmount = .seconds(5)) async {
        _ = await eventLoop.within(patience, otherwise: false) { done in
            draining = .waiting { done(true) }
            lookWhetherDrained()
        }
        if draining != nil { draining = .silent }
    }

    /// After receipts, and after the end of a session.
    func lookWhetherDrained() {
        guard case .waiting(let done)? = draining, sessions.values.allSatisfy(\.machine.unacknowledgedTags.isEmpty) else { return }
        draining = .silent
        done()
    }

    /// Takes `drain` back.
    public func resume() {
        if case .waiting(let done)? = draining { done() }
        draining = nil
        for link in links.values { kick(link) }
    }
}
