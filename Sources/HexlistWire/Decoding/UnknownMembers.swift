import HexlistJSON
import HexlistModel

/// The position of a member that this version does not know (rule T1).
struct UnknownMember {
    /// The range of the name, without its quotes.
    var nameStart: UInt32
    var nameEnd: UInt32
    var valueStart: UInt32
    /// The position after the value; 0 if the member is not kept.
    var valueEnd: UInt32
    var hasEscapedName: Bool

    @inline(__always)
    init(name: Range<Int>, hasEscapedName: Bool, value: Range<Int>) {
        nameStart = UInt32(truncatingIfNeeded: name.lowerBound)
        nameEnd = UInt32(truncatingIfNeeded: name.upperBound)
        valueStart = UInt32(truncatingIfNeeded: value.lowerBound)
        valueEnd = UInt32(truncatingIfNeeded: value.upperBound)
        self.hasEscapedName = hasEscapedName
    }

    var isKept: Bool { valueEnd != 0 }
    var name: Range<Int> { Int(nameStart)..<Int(nameEnd) }
    var value: Range<Int> { Int(valueStart)..<Int(valueEnd) }
}

/// The unknown members of the objects that are being read. It is a stack, because objects are nested.
///
/// The size of the frame bounds its memory: a member takes at least 5 bytes in the frame, and 20 bytes in this stack.
struct UnknownMembers {
    private(set) var members: [UnknownMember] = []
    /// The names without escapes, used to find repeated names.
    private var names: [UInt8] = []

    /// The index that the next member will have. Read at the beginning of an object, it is the index of the object's first member.
    var mark: Int { members.count }

    mutating func removeAll() {
        guard !members.isEmpty else { return }
        members.removeAll(keepingCapacity: true)
        // A buffer that became large because of a hostile frame is freed.
        if members.capacity > 4_096 || names.capacity > 64 << 10 { self = UnknownMembers() }
    }

    mutating func append(_ member: UnknownMember) -> Int {
        members.append(member)
        return members.count - 1
    }

    /// Marks a member as not kept, because it was used under another name, or a later member replaces it.
    mutating func drop(_ index: Int) {
        guard members.indices.contains(index) else { return }
        members[index].valueEnd = 0
    }

    mutating func truncate(to mark: Int) {
        guard mark < members.count else { return }
        members.removeSubrange(mark...)
    }

    /// Ends an object. Of members with the same name, only the last one is kept (rule T19). Appends the kept members as a JSON object, byte
    /// for byte. Takes linear time.
    /// - Parameter repeated: called for each member that a later one replaces.
    /// - Returns: the range of the JSON object in `buffer`; empty if no member is kept.
    mutating func close(
        from mark: Int, in json: JSONScanner, appendingTo buffer: inout [UInt8], repeated: (UnknownMember) -> Void
    ) -> Range<Int> {
        if members.count - mark > 1 { dropOverridden(from: mark, in: json, repeated: repeated) }
        let start = buffer.count
        for member in members[mark...] where member.isKept {
            buffer.append(buffer.count == start ? UInt8(ascii: "{") : UInt8(ascii: ","))
            buffer.append(contentsOf: json.bytes(Int(member.nameStart) - 1, Int(member.valueEnd)))
        }
        if buffer.count > start { buffer.append(UInt8(ascii: "}")) }
        return start..<buffer.count
    }

    private mutating func dropOverridden(from mark: Int, in json: JSONScanner, repeated: (UnknownMember) -> Void) {
        // All names are unescaped into one buffer, so that they can be compared as bytes.
        names.removeAll(keepingCapacity: true)
        var ends: [Int] = []
        ends.reserveCapacity(members.count - mark)
        for member in members[mark...] {
            if member.hasEscapedName {
                json.appendName(Int(member.nameStart), Int(member.nameEnd), to: &names)
            } else {
                names.append(contentsOf: json.bytes(Int(member.nameStart), Int(member.nameEnd)))
            }
            ends.append(names.count)
        }
        let count = members.count - mark
        // A hash table with open addressing, at most half full. `Hasher` uses a random seed, so peers cannot cause collisions.
        var slots = [Int32](repeating: -1, count: max(4, count.nextPowerOf2 * 2))
        let wrap = slots.count - 1
        for index in (0..<count).reversed() where members[mark + index].isKept {
            let name = (index == 0 ? 0 : ends[index - 1])..<ends[index]
            var slot = names.withUnsafeBytes { bytes in
                var hasher = Hasher()
                hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: bytes[name]))
                return hasher.finalize() & wrap
            }
            while true {
                let other = Int(slots[slot])
                if other < 0 {
                    slots[slot] = Int32(truncatingIfNeeded: index)
                    break
                }
                if names[name].elementsEqual(names[(other == 0 ? 0 : ends[other - 1])..<ends[other]]) {
                    repeated(members[mark + index])
                    drop(mark + index)
                    break
                }
                slot = (slot + 1) & wrap
            }
        }
    }
}

extension Int {
    /// The least power of two that is at least this value; for values below 2^28.
    fileprivate var nextPowerOf2: Int { self <= 1 ? 1 : 1 << (Int.bitWidth - (self - 1).leadingZeroBitCount) }
}
