import HexlistJSON
import HexlistModel

/// The `children` member of a hex.
struct ChildrenMember {
    /// The position of the `[`; 0 where the last one of its name is no array.
    var start = 0
    /// The index among the unknown members of one that is no array (T1).
    var kept: Int?
    var isGiven = false
    var isNull = false
    var isRepeated = false
}

/// The position of a hex that is inside another, in the bytes being read.
struct ChildPosition {
    /// Its position in the array it stands in, elements counted that are no hex.
    var index: Int
    /// The position of its own `children`; 0 for none.
    var children: Int
}

/// Reads the hexes inside a hex, level by level: at each level the arrays that the one before it found. So depth costs no stack, and each
/// byte is passed over once for each level it is in, `ProtocolLimits.levels` times at most.
extension HexReader {
    /// Takes note of a `children` member, and checks its grammar.
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

    /// Reads the hexes of an array whose grammar was checked, and those inside them.
    /// - Parameters:
    ///   - first: the position of the array's `[`.
    ///   - open: the number of containers open around the hex it belongs to.
    @inline(never)
    mutating func readChildren(_ json: JSONScanner, at first: Int, open: Int, _ dialect: HexMember.Dialect) throws(GrammarFault) {
        ownLinks = links.count
        let dialect: HexMember.Dialect = dialect == .local ? .localChild : dialect == .localChild ? .localChild : .wire
        var level = 2
        try readLevel(level, json, of: nil, at: first, open: open &+ 2, dialect)
        var next = 0
        while next < children.count, excess == nil {
            level += 1
            let end = children.count
            while next < end, excess == nil {
                let start = childPlaces[next].children
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

    /// Reads the hexes that one array has.
    /// - Parameters:
    ///   - parent: the index of the hex the array belongs to; `nil` for the hex itself.
    ///   - open: the number of containers open around an element.
    private mutating func readLevel(
        _ level: Int, _ json: JSONScanner, of parent: Int?, at start: Int, open: Int, _ dialect: HexMember.Dialect
    ) throws(GrammarFault) {
        var position = json.enterArray(at: start)
        var index = 0
        while json.byte(position) != UInt8(ascii: "]"), excess == nil {
            if json.byte(position) == UInt8(ascii: "{") {
                guard level <= ProtocolLimits.levels else { return excess = .levels }
                guard children.count < ProtocolLimits.children else { return excess = .children }
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
        let place = children.count
        children.append(ChildContent(parent: parent))
        childPlaces.append(ChildPosition(index: index, children: 0))
        current = place
        linkMark = links.count
        excessMark = excess
        var hex = OpenHex()
        let end = try members(json, at: start, open: open, dialect, into: &hex)
        childPlaces[place].children = hex.children.start
        children[place].senderUUID = hex.senderUUID.slice
        children[place].senderName = hex.senderName.slice
        children[place].hexDescription = hex.hexDescription.slice
        children[place].hexColor = hex.hexColor.slice
        children[place].extra = hex.extra
        children[place].links = linkMark - ownLinks..<links.count - ownLinks
        return end
    }

    /// Forgets the hexes inside the one that was read before.
    @inline(never)
    mutating func clearChildren() {
        children.removeAll(keepingCapacity: true)
        childPlaces.removeAll(keepingCapacity: true)
        current = nil
        // A buffer that a hostile frame made large is not kept.
        if children.capacity > 256 { (children, childPlaces) = ([], []) }
    }

    /// What stands before the path of a member of the hex that is being read: `children[1].` of one inside.
    var prefix: String {
        guard var child = current else { return "" }
        var prefix = "children[\(childPlaces[child].index)]."
        while let parent = children[child].parent {
            prefix = "children[\(childPlaces[parent].index)]." + prefix
            child = parent
        }
        return prefix
    }
}
