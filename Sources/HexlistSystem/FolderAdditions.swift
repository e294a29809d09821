internal import CLinux
@preconcurrency internal import Dispatch

#if canImport(Glibc)
    internal import Glibc
#endif

/// Watches a folder for files that are moved into it or written in it. The kernel reports the changes, so nothing is polled.
public final class FolderAdditions: Sendable {
    private let source: any DispatchSourceRead

    /// - Parameter onChange: called on any thread. One call may stand for several files.
    /// - Throws: the error of inotify(7), for example if the folder does not exist.
    public init(in folder: String, onChange: @escaping @Sendable () -> Void) throws(SystemError) {
        let descriptor = hexlist_watch_additions(folder)
        guard descriptor >= 0 else { throw .last }
        source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: DispatchQueue(label: "hexlist.additions"))
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
