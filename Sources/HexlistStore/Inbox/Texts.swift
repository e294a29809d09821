internal import HexlistModel

/// The two buffers that the text slices of a hex refer to.
struct Texts {
    let frame: UnsafeRawBufferPointer
    let arena: UnsafeRawBufferPointer

    /// The bytes of a slice; empty if the slice is out of the bounds of its buffer.
    @inline(__always)
    subscript(slice: TextSlice) -> UnsafeRawBufferPointer {
        let bytes = slice.isInArena ? arena : frame
        guard slice.offset + slice.count <= bytes.count else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: bytes[slice.offset..<slice.offset + slice.count])
    }
}
