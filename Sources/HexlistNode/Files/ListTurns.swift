import HexlistModel
import NIOCore

/// The lists of folders that peers wait for: of each peer one step at a time is under way, its lists in turn. So a peer that asks for many, or for
/// long ones, has one of the threads for files at most, and the files of others wait for no more than a step.
struct ListTurns<List> {
    /// The lists of the peers that have a step under way, without the one it is of.
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
