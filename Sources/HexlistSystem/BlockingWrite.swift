#if canImport(Glibc)
    internal import Glibc
#endif

/// Writes to a blocking file descriptor.
public enum BlockingWrite {
    /// Writes all bytes, with as many write(2) calls as necessary.
    /// - Throws: the error of write(2). Some of the bytes may have been written before it.
    public static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .last }
            rest = rest.dropFirst(count)
        }
    }

    public static func write(_ bytes: [UInt8], to descriptor: CInt) throws(SystemError) {
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try write(bytes, to: descriptor) }
        }
        try result.get()
    }
}
