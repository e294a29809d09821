internal import CLinux
@preconcurrency internal import Dispatch

#if canImport(Glibc)
    internal import Glibc
#endif

/// Watches a folder for entries that are deleted or moved away. The kernel reports the changes, so nothing is polled.
public enum FolderWatch {
    /// Returns a stream that yields an element after entries were removed. An element does not state which entries, and may stand for
    /// several removals. Ending the stream ends the watch.
    /// - Throws: the error of inotify(7), for example if there are too many watches.
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
