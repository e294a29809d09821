internal import CLinux
internal import Crypto
import HexlistModel
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#endif

/// A file that is being fetched. It is named `.NAME.ID.part`, is written sequentially, and is renamed when it is complete.
///
/// A file with a final name is always complete, even after a crash or a power failure: before the rename, its length and SHA-256 are
/// verified, and its data is made durable. The rename never replaces another file.
///
/// An interrupted download continues after the bytes that are certainly on the disk. If the machine was not restarted since the last write
/// (`RebootCheck`), these are all bytes. Otherwise they end at a multiple of `stride` or `longStride`: the data is synced at each multiple
/// before more is written, so the last multiple that is followed by a byte is certain.
///
/// Calls block and must not overlap. Any thread may call.
public final class PartFile: Sendable {
    /// The announced properties of the file, and how to save it.
    public struct Specification: Sendable {
        public var name: FileName
        /// At most 64 letters and digits. They are random, because other machines may write partial files into the same folder.
        public var id: String
        /// The announced size in bytes. No more bytes are accepted.
        public var size: Int64
        /// The announced SHA-256, which is verified at the end; `nil` if none was announced.
        public var digest: [UInt8]?
        /// Modification time at the source, in nanoseconds since 1970; `nil` for the time of writing.
        public var modified: Int64?
        /// Permission bits that the complete file lacks compared with mode 0666.
        public var umask: UInt16
        /// Bytes that must stay free on the file system.
        public var minimumFree: Int64
        /// Whether the name of the partial file omits the file's own name, for programs in which some characters of names are special.
        public var hidesName = false
        /// Whether a complete file may be shorter than `size`, which is then only a maximum.
        public var mayBeShorter = false

        public init(
            name: FileName, id: String, size: Int64, digest: [UInt8]?, modified: Int64?, umask: UInt16 = 0o022, minimumFree: Int64 = 0
        ) {
            (self.name, self.id, self.size, self.digest, self.modified) = (name, id, size, digest, modified)
            (self.umask, self.minimumFree) = (umask, minimumFree)
        }

        /// The name of the partial file.
        public var partName: String { (hidesName ? FileName("remote") : name).partName(id) }

        /// Creates the partial file. Fails if it already exists.
        func makePart(in folder: Descriptor) throws(FileFault) -> Descriptor {
            try Descriptor.open(partName, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, in: folder)
        }

        /// Checks that there is space for `rest` more bytes.
        /// - Throws: `diskFull` if less than `minimumFree` bytes would stay free.
        func checkRoom(_ free: Int64, for rest: Int64) throws(FileFault) {
            guard rest > 0 else { return }
            try Descriptor.checkRoom(free, for: rest, minimumFree: minimumFree)
        }

        /// Sets the mode and the modification time of a complete file.
        func setModeAndTime(of file: Descriptor, keepsTime: Bool = false) {
            _ = file.use { fchmod($0, 0o666 & ~mode_t(umask)) }
            guard let modified, !keepsTime else { return }
            let (seconds, rest) = modified.quotientAndRemainder(dividingBy: 1_000_000_000)
            let isBefore = rest < 0
            _ = file.use { hexlist_set_modified($0, seconds - (isBefore ? 1 : 0), rest + (isBefore ? 1_000_000_000 : 0)) }
        }
    }

    /// The final name and the inode of a complete file. They are recorded before the rename, so that the file is recognised after a crash.
    public struct Placement: Hashable, Sendable {
        /// The final name: the announced name, or the announced name with a number.
        public var name: String
        public var device: UInt64
        public var inode: UInt64

        public init(name: String, device: UInt64, inode: UInt64) { (self.name, self.device, self.inode) = (name, device, inode) }

        public static func == (left: Placement, right: Placement) -> Bool {
            left.device == right.device && left.inode == right.inode && PeerTextComparison.areEqual(left.name, right.name)
        }

        public func hash(into hasher: inout Hasher) { hasher.combine(inode) }
    }

    /// The state of a download with a recorded placement, as found on the disk after a restart.
    public enum RecoveredState: Equatable, Sendable {
        /// The complete file exists under its final name.
        case finished
        /// Only the partial file exists. `init` can continue it.
        case partial
        /// Neither file exists, so the download begins again.
        case gone
    }

    /// Interval of syncs in bytes for a file without a boot ID. At most this number of bytes is fetched twice after an interruption.
    public static let stride: Int64 = 4 << 20
    /// Interval of syncs in bytes for a file with a boot ID. With the shorter interval, syncs would take a third of the time of a fast
    /// transfer.
    static let longStride: Int64 = 64 << 20
    /// Interval in bytes at which the kernel is asked to begin writing to the disk. This shortens later syncs, also those of the store.
    private static let writebackInterval: Int64 = 1 << 20
    /// Maximum number of names that are tried, if other programs create files with the chosen names just before the rename.
    private static let attempts = 16

    public let specification: Specification
    private let folder: Descriptor
    /// An instant after the folder was opened, and before the first write.
    private let since: ContinuousClock.Instant
    private let file: Descriptor
    private let device: UInt64
    private let inode: UInt64
    private let hasBootID: Bool
    private let state: Mutex<State>

    private struct State {
        var written: HashedPrefix
        /// The bytes at the beginning of the file that are known to be durable.
        var durable: HashedPrefix
        /// Number of bytes that the kernel was asked to write to the disk.
        var writebackBegun: Int64
        /// Whether data is synced at multiples of `longStride` only.
        var usesLongStride = false
        var isEnded = false
    }

    /// The length of the beginning of a file, and its digest.
    private struct HashedPrefix: Sendable {
        var length: Int64 = 0
        var digest = SHA256()
    }

    /// Opens or creates the partial file, and hashes its existing bytes.
    /// - Parameters:
    ///   - knownGood: the result of the last `suspend()`; 0 if unknown.
    ///   - progress: called with the number of bytes hashed so far; returns `false` to cancel.
    /// - Throws: `notFound`, `notFolder`, `notAllowed`, `diskFull`, `partInUse`, `cancelled`; `system`.
    public init(
        folder path: String, specification: Specification, knownGood: Int64 = 0, progress: (_ bytes: Int64) -> Bool = { _ in true }
    ) throws(FileFault) {
        let folder = try Descriptor.open(path, O_RDONLY | O_DIRECTORY)
        since = .now
        let before = try folder.status(of: specification.partName)
        let file: Descriptor
        if let before {
            guard before.isRegular, before.st_uid == geteuid(), before.st_nlink == 1 else { throw .partInUse }
            file = try Descriptor.open(specification.partName, O_RDWR | O_NOFOLLOW | O_NONBLOCK, in: folder)
        } else {
            try specification.checkRoom(folder.freeBytes(), for: specification.size)
            file = try specification.makePart(in: folder)
        }
        let status = try file.status()
        guard status.isRegular, status.st_uid == geteuid() else { throw .partInUse }
        guard file.use({ flock($0, LOCK_EX | LOCK_NB) }) == 0 else { throw errno == EWOULDBLOCK ? .partInUse : .last }
        let boot = RebootCheck(of: file)
        let length = Int64(status.st_size)
        let good =
            switch boot {
            case .now: min(specification.size, length)
            case .earlier: min(specification.size, Self.good(length, Self.longStride, knownGood: knownGood))
            case .none: min(specification.size, Self.good(length, Self.stride, knownGood: knownGood))
            }
        var prefix = HashedPrefix()
        try FileDigest.pieces(
            upTo: good, progress: progress, read: { buffer, offset throws(FileFault) in try file.read(into: buffer, at: offset) }
        ) { prefix.digest.update(bufferPointer: $0) }
        prefix.length = good
        try Self.cut(file, to: good)
        if before != nil { try specification.checkRoom(folder.freeBytes(), for: specification.size - good) }
        (self.specification, self.folder, self.file) = (specification, folder, file)
        (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
        hasBootID = specification.size > Self.stride && RebootCheck.set(on: file)
        // Without a restart, the existing bytes can be read, but may not be on the disk yet.
        state = Mutex(State(written: prefix, durable: boot == .now ? HashedPrefix() : prefix, writebackBegun: good))
    }

    /// Returns the number of bytes that are certainly durable: up to the last multiple of `stride` that is followed by a byte, or
    /// `knownGood` if that is greater.
    /// - Parameter length: the length of the file.
    private static func good(_ length: Int64, _ stride: Int64, knownGood: Int64) -> Int64 {
        max(length > 0 ? (length - 1) / stride * stride : 0, min(length, knownGood))
    }

    /// Number of bytes received so far. It is also the offset of the next byte.
    public var length: Int64 { state.withLock { $0.written.length } }

    /// Appends bytes. After an error, the caller continues at `length`: the bytes after it were not written.
    /// - Throws: `tooLong`, if the file would exceed its size; `diskFull`, `system`.
    public func append(_ bytes: UnsafeRawBufferPointer) throws(FileFault) {
        try withState { state throws(FileFault) in
            guard Int64(bytes.count) <= specification.size - state.written.length else { throw .tooLong }
            var rest = bytes[...]
            while !rest.isEmpty {
                let room = Int(Self.stride - state.written.length % Self.stride)
                let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(room))
                let count = file.use { pwrite($0, piece.baseAddress, piece.count, off_t(state.written.length)) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw count < 0 ? .last : .diskFull }
                state.written.digest.update(bufferPointer: UnsafeRawBufferPointer(rebasing: piece[..<count]))
                state.written.length += Int64(count)
                rest = rest.dropFirst(count)
                if state.written.length - state.writebackBegun >= Self.writebackInterval {
                    let (writebackBegun, end) = (state.writebackBegun, state.written.length)
                    file.use { hexlist_begin_write_back($0, writebackBegun, end - writebackBegun) }
                    state.writebackBegun = end
                }
                guard state.written.length % Self.stride == 0 else { continue }
                if !state.usesLongStride || state.written.length % Self.longStride == 0 { try makeDurable(&state) }
                try specification.checkRoom(folder.freeBytes(), for: specification.size - state.written.length)
            }
        }
    }

    /// Checks that there is space for the rest of the file.
    /// - Throws: `diskFull` if fewer than `Specification.minimumFree` bytes would stay free.
    public func checkRoom() throws(FileFault) {
        try specification.checkRoom(folder.freeBytes(), for: specification.size - length)
    }

    /// Fills the partial file, which must be empty, with the content of another file. If the file system supports it, both share their
    /// blocks (reflink); otherwise the bytes are copied.
    /// - Parameter progress: called with the number of bytes copied so far; returns `false` to cancel.
    /// - Throws: `changed` if the source has another size or changes while it is copied; `diskFull`, `partLost`, `cancelled`, `system`.
    public func fill(from source: OfferedFile, progress: (_ bytes: Int64) -> Bool = { _ in true }) throws(FileFault) {
        guard source.size == specification.size, length == 0 else { throw .changed }
        let isClone = source.clone(to: file)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: FileDigest.piece, alignment: 16)
        defer { buffer.deallocate() }
        while length < specification.size {
            let offset = length
            let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(Int64(buffer.count), specification.size - offset))])
            let count = isClone ? try file.read(into: wanted, at: offset) : try source.read(into: wanted, at: offset)
            guard count == wanted.count else { throw .changed }
            if isClone {
                try withState { state throws(FileFault) in
                    state.written.digest.update(bufferPointer: UnsafeRawBufferPointer(wanted))
                    state.written.length += Int64(count)
                }
            } else {
                try append(UnsafeRawBufferPointer(wanted))
            }
            guard progress(length) else { throw .cancelled }
        }
        try source.check()
    }

    /// Makes the received bytes durable before the download pauses.
    /// - Returns: the value for the parameter `knownGood` of a later `init`.
    @discardableResult
    public func suspend() throws(FileFault) -> Int64 {
        try withState { state throws(FileFault) in
            try makeDurable(&state)
            return state.durable.length
        }
    }

    /// Verifies length and digest, makes the file durable, and renames it to its final name, with a number if that name exists. Then the
    /// object can no longer be used, except after `diskFull`, `tooShort` or an error of `willRename`: `finish` can then be called again.
    /// - Parameter willRename: called before each attempt to rename. After a crash, the file may have the name that was passed to the last
    ///   call.
    /// - Throws: `otherBytes`, after deleting the partial file; `tooShort`, `diskFull`, `partLost`, `noFreeName`, `system`; errors of
    ///   `willRename`.
    public func finish(willRename: (Placement) throws -> Void = { _ in }) throws -> Placement {
        try state.withLock { state in
            try complete(&state)
            do throws(FileFault) {
                try file.synchronize()
            } catch {
                try rewind(&state)
                throw error
            }
            state.durable = state.written
            RebootCheck.remove(from: file)
            let placement = try place(willRename)
            state.isEnded = true
            return placement
        }
    }

    /// Accepts a file that another program wrote in place of the partial file. Verifies its length and sets its mode, but not its
    /// modification time. Then the object can no longer be used, and `VerifiedPartFile.place` gives the file its final name.
    /// - Throws: `tooShort`, `tooLong`; `partLost` if there is no such file; `system`.
    public func takeOver() throws(FileFault) -> VerifiedPartFile {
        try withState { state throws(FileFault) in
            let file = try openWritten()
            let status = try file.status()
            let length = Int64(status.st_size)
            guard length == specification.size else { throw length < specification.size ? .tooShort(length) : .tooLong }
            // An empty file may be the one that was created by this process. Its modification time is then not that of the source.
            specification.setModeAndTime(of: file, keepsTime: length > 0)
            RebootCheck.remove(from: file)
            state.isEnded = true
            return VerifiedPartFile(
                specification: specification, device: UInt64(status.st_dev), inode: UInt64(status.st_ino), folder: folder, since: since)
        }
    }

    /// Returns the number of bytes that another program has written in place of the partial file so far.
    public func writtenBytes() throws(FileFault) -> Int64 { Int64(try openWritten().status().st_size) }

    private func openWritten() throws(FileFault) -> Descriptor {
        guard let status = try folder.status(of: specification.partName), status.isRegular, status.st_uid == geteuid(), status.st_nlink == 1
        else {
            throw .partLost
        }
        return try Descriptor.open(specification.partName, O_RDWR | O_NOFOLLOW | O_NONBLOCK, in: folder)
    }

    /// Verifies length and digest, and sets mode and modification time.
    private func complete(_ state: inout State) throws(FileFault) {
        guard !state.isEnded else { throw .partLost }
        guard state.written.length == specification.size || specification.mayBeShorter else { throw .tooShort(state.written.length) }
        if let announced = specification.digest, announced != Array(state.written.digest.finalize()) {
            state.isEnded = true
            remove()
            throw .otherBytes
        }
        // Errors are ignored, because some file systems do not support modes, or not all times.
        specification.setModeAndTime(of: file)
    }

    /// The SHA-256 of the bytes received so far, 32 bytes.
    public var digest: [UInt8] { state.withLock { Array($0.written.digest.finalize()) } }

    /// Deletes the partial file. Then the object can no longer be used.
    public func discard() {
        state.withLock { state in
            guard !state.isEnded else { return }
            state.isEnded = true
            remove()
        }
    }

    // MARK: Recovery and deletion without an open file

    /// Determines the state in which a crash left a download with a recorded placement. If the complete file has both names, the name of
    /// the partial file is removed.
    /// - Parameter path: the path of the folder.
    public static func recover(folder path: String, specification: Specification, placement: Placement) throws(FileFault) -> RecoveredState
    {
        let folder = try Descriptor.open(path, O_RDONLY | O_DIRECTORY)
        let part = try folder.status(of: specification.partName)
        let final = try SharePath.isName(placement.name) ? folder.status(of: placement.name) : nil
        let isOwn = { (status: stat) in UInt64(status.st_dev) == placement.device && UInt64(status.st_ino) == placement.inode }
        if let final, final.isRegular, isOwn(final), Int64(final.st_size) == specification.size {
            // If the rename was done with link(2) and unlink(2), the crash may have left both names.
            if let part, isOwn(part) { _ = folder.use { unlinkat($0, specification.partName, 0) } }
            try folder.synchronize()
            return .finished
        }
        return part == nil ? .gone : .partial
    }

    /// Deletes a partial file of this user, if it exists. Called while no `PartFile` object for it exists.
    /// - Parameter path: the path of the folder.
    public static func discard(folder path: String, specification: Specification) {
        guard let folder = try? Descriptor.open(path, O_RDONLY | O_DIRECTORY), let part = try? folder.status(of: specification.partName),
            part.isRegular, part.st_uid == geteuid()
        else { return }
        _ = folder.use { unlinkat($0, specification.partName, 0) }
    }

    // MARK: Helpers

    private func withState<Result>(_ body: (inout State) throws(FileFault) -> Result) throws(FileFault) -> Result {
        try state.withLock { state throws(FileFault) in
            guard !state.isEnded else { throw .partLost }
            return try body(&state)
        }
    }

    private func makeDurable(_ state: inout State) throws(FileFault) {
        guard state.durable.length < state.written.length else { return }
        do throws(FileFault) {
            // The boot ID has to be durable before syncs become rarer. Otherwise a later `init` might find no boot ID, and assume that data
            // was synced at each `stride`.
            if hasBootID, !state.usesLongStride { try file.synchronize() } else { try file.synchronizeData() }
        } catch {
            try rewind(&state)
            throw error
        }
        state.durable = state.written
        state.usesLongStride = hasBootID
    }

    /// Discards the bytes that are not durable. After a failed fsync(2), the content of the disk is unknown.
    private func rewind(_ state: inout State) throws(FileFault) {
        state.written = state.durable
        state.writebackBegun = state.durable.length
        try Self.cut(file, to: state.durable.length)
    }

    private static func cut(_ file: Descriptor, to length: Int64) throws(FileFault) {
        while file.use({ ftruncate($0, off_t(length)) }) != 0 {
            guard errno == EINTR else { throw .last }
        }
    }

    private func place(_ willRename: (Placement) throws -> Void) throws -> Placement {
        guard let part = try folder.status(of: specification.partName), UInt64(part.st_ino) == inode, UInt64(part.st_dev) == device else {
            throw FileFault.partLost
        }
        for _ in 1...Self.attempts {
            let name = try specification.name.firstFree { name throws(FileFault) in try folder.status(of: name.description) != nil }
            guard let name else { break }
            let placement = Placement(name: name.description, device: device, inode: inode)
            try willRename(placement)
            guard try rename(to: placement.name) else { continue }
            try folder.synchronize()
            return placement
        }
        throw FileFault.noFreeName
    }

    /// Renames the partial file, unless a file of that name exists.
    /// - Returns: `false` if the name is taken.
    private func rename(to name: String) throws(FileFault) -> Bool { try folder.renameNew(specification.partName, to: name) }

    /// Deletes the partial file, unless another file has its name by now.
    private func remove() {
        guard let part = try? folder.status(of: specification.partName), UInt64(part.st_ino) == inode, UInt64(part.st_dev) == device else {
            return
        }
        _ = folder.use { unlinkat($0, specification.partName, 0) }
    }
}
