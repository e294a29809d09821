internal import CLinux
@preconcurrency internal import Dispatch

#if canImport(Glibc)
    internal import Glibc
#endif

/// Watches a folder for entries that are deleted or moved away. The kernel reports them: nothing is polled.
public enum FolderWatch {
    /// A stream with an element whenever entries were removed. It does not say which ones, and several removals may be one element. The
    /// watch ends with the stream.
    /// - Throws: the error of the system, for example if there are too many watches.
    public static func removals(in folder: String) throws(SystemError) -> AsyncStream<Void> {
        let descriptor = hexlist_watch_folder(folder)
        guard descriptor >= 0 else { throw .last }
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: DispatchQueue(label: "hexlist.folder"))
        source.setEventHandler {
            hexlist_drain(descriptor)
            continuation.yield()
        }
        source.setCancelHandler { close(descriptor) }
        continuation.onTermination = { _ in source.cancel() }
        source.activate()
        return stream
    }
}
