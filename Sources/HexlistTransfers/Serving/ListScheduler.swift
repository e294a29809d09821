import HexlistModel
import NIOCore

/// Schedules the reading of folder listings for peers in steps. Each peer has at most one step in flight, and its listings take turns. A
/// peer that requests many or long listings therefore occupies at most one file thread.
struct ListScheduler<List> {
    /// The waiting listings of each peer that has a step in flight.
    private var waiting: [PeerID: CircularBuffer<List>] = [:]

    /// Adds a listing.
    /// - Returns: whether the caller must run its first step now; otherwise `next` returns it later.
    mutating func begin(_ list: List, of peer: PeerID) -> Bool {
        guard waiting[peer] == nil else {
            waiting[peer]?.append(list)
            return false
        }
        waiting[peer] = CircularBuffer()
        return true
    }

    /// Ends a step.
    /// - Parameter unfinished: the listing of this step, unless it was read to its end.
    /// - Returns: the listing whose next step must run now; `nil` if none waits.
    mutating func next(of peer: PeerID, unfinished: List?) -> List? {
        if let unfinished { waiting[peer]?.append(unfinished) }
        let next = waiting[peer]?.popFirst()
        if next == nil { waiting[peer] = nil }
        return next
    }
}
