import HexlistJSON
import HexlistModel

/// The `children` member of a hex.
struct ChildrenMember {
    /// The position of the `[`; 0 if the last member of this name has no array as value.
    var start = 0
    /// The index of this member in the list of unknown members, to which it belongs if its value is not an array (rule T1); otherwise
    /// `nil`.
    var kept: Int?
    var isGiven = false
    var isNull = false
    var isRepeated = false
}

/// The position of an inner hex in its JSON.
struct ChildPosition {
    /// The index of the hex in its array. Elements that are not hexes count as well.
    var index: Int
    /// The position of the array `children` in the hex; 0 if it has none.
    var children: Int
}

/// Reads inner hexes level by level and without recursion. Each step reads the `children` arrays of all hexes of the previous level. A byte
/// at level n is read n times, at most `ProtocolLimits.levels` times.
extension HexReader {
    /// Records the position of a `children` member, and validates the syntax of its value.
    /// - Returns: the position after its value.
    @inline(never)
    mutating func children(
        _ json: JSONScanner, _ name: Int, _ token: StringToken, at value: Int, open: Int, into member: inout ChildrenMember
    ) throws(GrammarFault) -> Int {
        member.isRepeated = member.isGiven
        member.isGiven = true
        member.start = 0
        member.isNull = false
        if let kept = member.kept {
            unknown.drop(kept)
            member.kept = nil
        }
        switch json.byte(value) {
        case UInt8(ascii: "["): member.start = value
        case UInt8(ascii: "n"): member.isNull = true
        default:
            let end = try keep(json, name, token, at: value, open: open)
            member.kept = unknown.mark - 1
            return end
        }
        return try json.skipValue(at: value, open: open)
    }

    mutating func report(_ member: ChildrenMember) {
        if member.isNull { report("T2", "children") }
        if member.isRepeated { report("T19", "children") }
    }

    /// Reads the hexes of an array whose syntax was validated, and all hexes inside them.
    /// - Parameters:
    ///   - first: the position of the array's `[`.
    ///   - open: the number of open containers around the hex that has the array.
    @inline(never)
    mutating func readChildren(_ json: JSONScanner, at first: Int, open: Int, _ dialect: HexMember.Dialect) throws(GrammarFault) {
        ownLinks = links.count
        let dialect: HexMember.Dialect = dialect == .local ? .localChild : dialect == .localChild ? .localChild : .wire
        var level = 2
        try readLevel(level, json, of: nil, at: first, open: open &+ 2, dialect)
        var next = 0
        while next < children.count, violation == nil {
            level += 1
            let end = children.count
            while next < end, violation == nil {
                let start = childPositions[next].children
                if start > 0 {
                    let siblings = children.count
                    try readLevel(level, json, of: next, at: start, open: open &+ 2 &* (level &- 1), dialect)
                    children[next].children = siblings..<children.count
                }
                next += 1
            }
        }
        current = nil
    }

    /// Reads the hexes of one array.
    /// - Parameters:
    ///   - parent: the index of the hex that has the array; `nil` for the outermost hex.
    ///   - open: the number of open containers around an element of the array.
    private mutating func readLevel(
        _ level: Int, _ json: JSONScanner, of parent: Int?, at start: Int, open: Int, _ dialect: HexMember.Dialect
    ) throws(GrammarFault) {
        var position = json.enterArray(at: start)
        var index = 0
        while json.byte(position) != UInt8(ascii: "]"), violation == nil {
            if json.byte(position) == UInt8(ascii: "{") {
                guard level <= ProtocolLimits.levels else { return violation = .levels }
                guard children.count < ProtocolLimits.children else { return violation = .children }
                position = try child(json, at: position, open: open, dialect, of: parent, index: index)
            } else {
                position = try json.skipValue(at: position, open: open)
                current = parent
                report("T16", "children[\(index)]")
            }
            position = try json.nextElement(position)
            index &+= 1
        }
    }

    private mutating func child(
        _ json: JSONScanner, at start: Int, open: Int, _ dialect: HexMember.Dialect, of parent: Int?, index: Int
    ) throws(GrammarFault) -> Int {
        let childIndex = children.count
        children.append(ChildContent(parent: parent))
        childPositions.append(ChildPosition(index: index, children: 0))
        current = childIndex
        linkMark = links.count
        violationMark = violation
        var hex = PartialHex()
        let end = try members(json, at: start, open: open, dialect, into: &hex)
        childPositions[childIndex].children = hex.children.start
        children[childIndex].senderUUID = hex.senderUUID.slice
        children[childIndex].senderName = hex.senderName.slice
        children[childIndex].hexDescription = hex.hexDescription.slice
        children[childIndex].hexColor = hex.hexColor.slice
        children[childIndex].extra = hex.extra
        children[childIndex].links = linkMark - ownLinks..<links.count - ownLinks
        return end
    }

    /// Removes the inner hexes of the previous hex.
    @inline(never)
    mutating func clearChildren() {
        children.removeAll(keepingCapacity: true)
        childPositions.removeAll(keepingCapacity: true)
        current = nil
        // A buffer that became large because of a hostile frame is freed.
        if children.capacity > 256 { (children, childPositions) = ([], []) }
    }

    /// The beginning of a member's path in the hex that is being read, such as `children[1].`; empty for the outermost hex.
    var prefix: String {
        guard var child = current else { return "" }
        var prefix = "children[\(childPositions[child].index)]."
        while let parent = children[child].parent {
            prefix = "children[\(childPositions[parent].index)]." + prefix
            child = parent
        }
        return prefix
    }
}
