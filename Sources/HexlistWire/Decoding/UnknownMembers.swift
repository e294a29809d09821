import HexlistJSON
import HexlistModel

/// Where a member that is kept as received (T1) stands in the bytes being read.
struct UnknownMember {
    /// Between the quotes.
    var nameStart: UInt32
    var nameEnd: UInt32
    var valueStart: UInt32
    /// Behind the value; 0 for a member that is not kept after all.
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

/// The unknown members of the objects being read: a stack, because a link is read inside a hex inside a wrapper.
///
/// What a peer can make of it is bounded by its frame: a member takes at least five bytes there and 20 here.
struct UnknownMembers {
    private(set) var members: [UnknownMember] = []
    /// Names as they compare, while an object with many or with escaped names is closed.
    private var names: [UInt8] = []

    /// Where the members of an object that is opened now will begin.
    var mark: Int { members.count }

    mutating func removeAll() {
        guard !members.isEmpty else { return }
        members.removeAll(keepingCapacity: true)
        // A hostile frame's room is not kept.
        if members.capacity > 4_096 || names.capacity > 64 << 10 { self = UnknownMembers() }
    }

    mutating func append(_ member: UnknownMember) -> Int {
        members.append(member)
        return members.count - 1
    }

    /// Forgets one member: it was taken under another name, or overridden by a later one.
    mutating func drop(_ index: Int) {
        guard members.indices.contains(index) else { return }
        members[index].valueEnd = 0
    }

    mutating func truncate(to mark: Int) {
        guard mark < members.count else { return }
        members.removeSubrange(mark...)
    }

    /// Closes an object: forgets every member but the last of each name (T19) and appends those left as one JSON object,
    /// each byte for byte from its name's quote to its value's end. Takes time linear in the bytes of the members.
    /// - Parameter repeated: called with each overridden member.
    /// - Returns: the range in `buffer`, empty where no member was kept.
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
        // Every name unescaped, one behind the other, so that names compare as bytes.
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
        // Open addressing, half empty; `Hasher` is seeded by the process, so no peer can choose names that collide.
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
    /// The least power of two that is no less, for a count of members (under 2^28).
    fileprivate var nextPowerOf2: Int { self <= 1 ? 1 : 1 << (Int.bitWidth - (self - 1).leadingZeroBitCount) }
}
