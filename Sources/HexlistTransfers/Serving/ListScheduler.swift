import HexlistModel
import NIOCore

/// Schedules the lists of folders that are read for peers, step by step: one step of each peer is in flight, its lists round-robin. So a
/// peer that requests many or long lists uses one of the threads for files at most, and the files of others wait for one step.
struct ListScheduler<List> {
    /// The other lists of the peers that have a step in flight.
    private var waiting: [PeerID: CircularBuffer<List>] = [:]

    /// - Returns: whether its first step begins now; otherwise `next` returns it later.
    mutating func begin(_ list: List, of peer: PeerID) -> Bool {
        guard waiting[peer] == nil else {
            waiting[peer]?.append(list)
            return false
        }
        waiting[peer] = CircularBuffer()
        return true
    }

    /// Ends a step.
    /// - Parameter unfinished: the list, unless it was read to its end.
    /// - Returns: the list of which a step begins now; `nil` where none waits.
    mutating func next(of peer: PeerID, unfinished: List?) -> List? {
        if let unfinished { waiting[peer]?.append(unfinished) }
        let next = waiting[peer]?.popFirst()
        if next == nil { waiting[peer] = nil }
        return next
    }
}
