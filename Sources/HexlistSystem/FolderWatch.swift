internal import CLinux
@preconcurrency internal import Dispatch

#if canImport(Glibc)
    internal import Glibc
#endif

/// A watch of a folder (inotify(7)). The kernel reports the changes, so nothing is polled.
public final class FolderWatch: Sendable {
    private let source: any DispatchSourceRead

    /// Watches for files that are moved into a folder or written in it.
    /// - Parameter onChange: called on any thread. One call may stand for several files.
    /// - Throws: the error of inotify(7), for example if the folder does not exist.
    public static func additions(in folder: String, onChange: @escaping @Sendable () -> Void) throws(SystemError) -> FolderWatch {
        try FolderWatch(hexlist_watch_additions(folder), onChange)
    }

    /// Returns a stream that yields an element after entries of a folder were deleted or moved away. An element does not state which
    /// entries, and may stand for several removals. Ending the stream ends the watch.
    /// - Throws: the error of inotify(7), for example if there are too many watches.
    public static func removals(in folder: String) throws(SystemError) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let watch = try FolderWatch(hexlist_watch_folder(folder)) { continuation.yield() }
        continuation.onTermination = { _ in watch.cancel() }
        return stream
    }

    /// - Parameter descriptor: a descriptor of inotify(7); negative if it could not be made, with the reason in `errno`.
    private init(_ descriptor: CInt, _ onChange: @escaping @Sendable () -> Void) throws(SystemError) {
        guard descriptor >= 0 else { throw .last }
        source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: DispatchQueue(label: "hexlist.folder"))
        source.setEventHandler {
            hexlist_drain(descriptor)
            onChange()
        }
        source.setCancelHandler { close(descriptor) }
        source.activate()
    }

    deinit { source.cancel() }

    public func cancel() { source.cancel() }
}
