import HexlistModel
import NIOCore

/// Schedules the reading of listings for peers, which is done in steps. Each peer has at most one step in progress, and its listings take
/// turns. A peer that requests many or long listings therefore occupies at most one file thread.
struct ListScheduler<List> {
    /// The listings that wait for their next step, for each peer that has a step in progress.
    private var waiting: [PeerID: CircularBuffer<List>] = [:]

    /// Adds a listing.
    /// - Returns: whether the caller is to run the listing's first step now. If not, `next` returns the listing later.
    mutating func begin(_ list: List, of peer: PeerID) -> Bool {
        guard waiting[peer] == nil else {
            waiting[peer]?.append(list)
            return false
        }
        waiting[peer] = CircularBuffer()
        return true
    }

    /// Records the end of a step.
    /// - Parameter unfinished: the listing of this step; `nil` if it was read completely.
    /// - Returns: the listing whose next step the caller is to run now; `nil` if none waits.
    mutating func next(of peer: PeerID, unfinished: List?) -> List? {
        if let unfinished { waiting[peer]?.append(unfinished) }
        let next = waiting[peer]?.popFirst()
        if next == nil { waiting[peer] = nil }
        return next
    }
}
