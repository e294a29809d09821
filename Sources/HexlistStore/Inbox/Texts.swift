internal import HexlistModel

/// The two buffers that hold a hex's slices.
struct Texts {
    let frame: UnsafeRawBufferPointer
    let arena: UnsafeRawBufferPointer

    /// The bytes of a slice; none for a slice that does not lie inside its buffer.
    @inline(__always)
    subscript(slice: TextSlice) -> UnsafeRawBufferPointer {
        let bytes = slice.isInArena ? arena : frame
        guard slice.offset + slice.count <= bytes.count else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: bytes[slice.offset..<slice.offset + slice.count])
    }
}
