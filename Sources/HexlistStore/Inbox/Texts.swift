internal import HexlistModel

/// The two buffers that contain the texts of a hex (`TextSlice`): the received frame, and an arena for other texts.
struct HexTextBuffers {
    let frame: UnsafeRawBufferPointer
    let arena: UnsafeRawBufferPointer

    /// The bytes of a text; empty if the slice exceeds its buffer.
    @inline(__always)
    subscript(slice: TextSlice) -> UnsafeRawBufferPointer {
        let bytes = slice.isInArena ? arena : frame
        guard slice.offset + slice.count <= bytes.count else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: bytes[slice.offset..<slice.offset + slice.count])
    }
}
