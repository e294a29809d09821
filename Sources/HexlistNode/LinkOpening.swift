import Synchronization

/// Reports new hexes in the inbox to the task that opens their links, but only while links of a peer are opened (`PeerChange.openLinks`).
/// Otherwise each commit would wake that task, which delays hexes on a machine with few cores. Can be used from any thread.
public final class LinkOpening: Sendable {
    private let watchers = Watchers()
    private let since = Mutex<Int64?>(nil)

    /// The number of the last event before links of a peer began to be opened; `nil` while links of no peer are opened.
    public var lastEventBefore: Int64? { since.withLock { $0 } }

    /// A stream with an element after each change of the inbox while links are opened, and when that begins. Changes are coalesced. Ends
    /// when the node stops.
    public func changes() -> AsyncStream<Void> { watchers.changes() }

    /// Sets whether links of any peer are opened.
    /// - Parameter lastEvent: the number of the last event when the peers were read.
    func set(_ isOpening: Bool, lastEvent: Int64) {
        let began = since.withLock { since in
            let began = isOpening && since == nil
            since = isOpening ? since ?? lastEvent : nil
            return began
        }
        // Hexes may have arrived since the peers were read.
        if began { watchers.notify() }
    }

    func hexesArrived() { if lastEventBefore != nil { watchers.notify() } }

    func finish() { watchers.finish() }
}
