internal import CLinux
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#endif

/// A pipe whose ends can be closed separately. Ends that are still open are closed on deinit. The descriptor of a closed end is -1.
final class Pipe: Sendable {
    private let ends: Mutex<(reader: CInt, writer: CInt)>

    init() throws(SystemError) {
        var both: [CInt] = [-1, -1]
        guard hexlist_pipe(&both) == 0 else { throw SystemError(code: errno) }
        ends = Mutex((both[0], both[1]))
    }

    deinit {
        closeReader()
        closeWriter()
    }

    var reader: CInt { ends.withLock { $0.reader } }
    var writer: CInt { ends.withLock { $0.writer } }

    func closeReader() { ends.withLock { Self.close(&$0.reader) } }
    func closeWriter() { ends.withLock { Self.close(&$0.writer) } }

    func setBlocking(_ end: CInt) { _ = fcntl(end, F_SETFL, 0) }

    private static func close(_ end: inout CInt) {
        if end >= 0 { Glibc.close(end) }
        end = -1
    }
}
