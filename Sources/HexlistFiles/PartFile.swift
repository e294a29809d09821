internal import CLinux
internal import Crypto
import HexlistModel
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#endif

/// A file on its way to this machine: `.NAME.ID.part` in the folder it is fetched into, appended to in order, and renamed when it is whole.
///
/// What is under the final name is whole, whenever the process or the machine ends: length and SHA-256 are checked and the bytes are on the
/// disk before the rename, which never replaces anything. What is there of a partial file is gone on with: all of it while the machine runs
/// that it was written on (`BootID`). After a restart of the machine, and where a file has no such mark, what the disk surely has: the data is
/// made durable at each multiple of a stride before anything is written behind that, so all up to the last multiple behind which there is a
/// byte is good. Calls come one after another, from any thread; they block.
public final class PartFile: Sendable {
    /// What is fetched, as it was announced, and how it is to lie there.
    public struct Goal: Sendable {
        public var name: FileName
        /// Letters and digits, at most 64; random, since other machines may fetch into the same folder.
        public var id: String
        /// Bytes. No more are ever written.
        public var size: Int64
        /// The SHA-256 that the bytes must have; `nil` where none was announced.
        public var digest: [UInt8]?
        /// Nanoseconds since 1970: when the file last changed where it comes from.
        public var modified: Int64?
        /// What is taken from the mode 0666 of the whole file.
        public var umask: UInt16
        /// Bytes that are to stay free on the file system.
        public var minimumFree: Int64
        /// Whether the partial file's name says nothing of the file's: for a program that reads some characters of a name as others.
        public var hidesName = false

        public init(
            name: FileName, id: String, size: Int64, digest: [UInt8]?, modified: Int64?, umask: UInt16 = 0o022, minimumFree: Int64 = 0
        ) {
            (self.name, self.id, self.size, self.digest, self.modified) = (name, id, size, digest, modified)
            (self.umask, self.minimumFree) = (umask, minimumFree)
        }

        /// The name of the partial file.
        public var partName: String { (hidesName ? FileName("remote") : name).partName(id) }

        /// Makes the partial file, which is not there yet.
        func makePart(in folder: Descriptor) throws(FileFault) -> Descriptor {
            try Descriptor.open(partName, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, in: folder)
        }

        /// - Throws: `diskFull` if so many more bytes leave too few of the free ones.
        func checkRoom(_ free: Int64, for rest: Int64) throws(FileFault) {
            guard rest > 0 else { return }
            let (room, isOver) = free.subtractingReportingOverflow(minimumFree)
            guard isOver || room >= rest else { throw .diskFull }
        }

        /// Gives a whole file its mode, and the time it last changed.
        func setModeAndTime(of file: Descriptor, keepsTime: Bool = false) {
            _ = file.use { fchmod($0, 0o666 & ~mode_t(umask)) }
            guard let modified, !keepsTime else { return }
            let (seconds, rest) = modified.quotientAndRemainder(dividingBy: 1_000_000_000)
            let isBefore = rest < 0
            _ = file.use { hexlist_set_modified($0, seconds - (isBefore ? 1 : 0), rest + (isBefore ? 1_000_000_000 : 0)) }
        }
    }

    /// Where the whole file is going to be, or is: enough to know it again after a crash between the rename and the note of it.
    public struct Placement: Hashable, Sendable {
        /// A name in the folder: `Goal.name`, or that with a number.
        public var name: String
        public var device: UInt64
        public var inode: UInt64

        public init(name: String, device: UInt64, inode: UInt64) { (self.name, self.device, self.inode) = (name, device, inode) }

        public static func == (left: Placement, right: Placement) -> Bool {
            left.device == right.device && left.inode == right.inode && PeerText.areEqual(left.name, right.name)
        }

        public func hash(into hasher: inout Hasher) { hasher.combine(inode) }
    }

    /// What a restart finds of a file whose row has a placement.
    public enum Adoption: Equatable, Sendable {
        /// The file is whole under the final name.
        case finished
        /// The partial file is there: `init` goes on with it.
        case partial
        /// Neither is there: it begins anew.
        case gone
    }

    /// Bytes of which no more than so many are fetched twice after an interruption.
    public static let stride: Int64 = 4 << 20
    /// The same of a file with a mark, after a restart of the machine. Waiting for the disk at each `stride` takes a third of a fast transfer.
    static let longStride: Int64 = 64 << 20
    /// Bytes after which the kernel is told to begin writing them, so that nobody waits long for the disk, neither here nor in the store.
    private static let writeBack: Int64 = 1 << 20
    /// How often a name is looked for again that another took in the last moment.
    private static let attempts = 16

    public let goal: Goal
    private let folder: Descriptor
    /// An instant after the folder was opened and before anything was written.
    private let since: ContinuousClock.Instant
    private let file: Descriptor
    private let device: UInt64
    private let inode: UInt64
    private let isMarked: Bool
    private let state: Mutex<State>

    private struct State {
        var written: Mark
        /// The last mark up to which the disk has the data.
        var durable: Mark
        /// The bytes of which the kernel was told to begin writing them.
        var begun: Int64
        /// Whether the data is made durable at each multiple of `longStride` alone.
        var isLong = false
        var isEnded = false
    }

    /// A length and the digest of what is before it.
    private struct Mark {
        var length: Int64 = 0
        var digest = SHA256()
    }

    /// Opens the partial file, or makes it. The digest of what is there is computed anew.
    /// - Parameters:
    ///   - path: the folder; the last name may be a symbolic link to one.
    ///   - knownGood: what `suspend()` last returned. Less than what the file shows by itself does no harm.
    ///   - progress: called with the bytes read of what is there; `false` ends it.
    /// - Throws: `notFound`, `notFolder`, `notAllowed`, `diskFull`, `partTaken`, `cancelled`; `system`.
    public init(
        folder path: String, goal: Goal, knownGood: Int64 = 0, progress: (_ bytes: Int64) -> Bool = { _ in true }
    ) throws(FileFault) {
        let folder = try Descriptor.open(path, O_RDONLY | O_DIRECTORY)
        since = .now
        let before = try folder.status(of: goal.partName)
        let file: Descriptor
        if let before {
            guard before.isRegular, before.st_uid == geteuid(), before.st_nlink == 1 else { throw .partTaken }
            file = try Descriptor.open(goal.partName, O_RDWR | O_NOFOLLOW | O_NONBLOCK, in: folder)
        } else {
            try goal.checkRoom(folder.freeBytes(), for: goal.size)
            file = try goal.makePart(in: folder)
        }
        let status = try file.status()
        guard status.isRegular, status.st_uid == geteuid() else { throw .partTaken }
        guard file.use({ flock($0, LOCK_EX | LOCK_NB) }) == 0 else { throw errno == EWOULDBLOCK ? .partTaken : .last }
        let boot = BootID(of: file)
        let length = Int64(status.st_size)
        let good =
            switch boot {
            case .now: min(goal.size, length)
            case .earlier: min(goal.size, Self.good(length, Self.longStride, knownGood: knownGood))
            case .none: min(goal.size, Self.good(length, Self.stride, knownGood: knownGood))
            }
        var mark = Mark()
        try FileDigest.pieces(
            upTo: good, progress: progress, read: { buffer, offset throws(FileFault) in try file.read(into: buffer, at: offset) }
        ) { mark.digest.update(bufferPointer: $0) }
        mark.length = good
        try Self.cut(file, to: good)
        if before != nil { try goal.checkRoom(folder.freeBytes(), for: goal.size - good) }
        (self.goal, self.folder, self.file) = (goal, folder, file)
        (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
        isMarked = goal.size > Self.stride && BootID.set(on: file)
        // Bytes that were written since the boot need not be on the disk yet.
        state = Mutex(State(written: mark, durable: boot == .now ? Mark() : mark, begun: good))
    }

    /// The bytes of a partial file that are good: all before the last multiple of `stride` that has a byte behind it.
    private static func good(_ length: Int64, _ stride: Int64, knownGood: Int64) -> Int64 {
        max(length > 0 ? (length - 1) / stride * stride : 0, min(length, knownGood))
    }

    /// The bytes that are there: where the next ones belong.
    public var length: Int64 { state.withLock { $0.written.length } }

    /// Appends bytes. What a fault leaves unwritten is to be fetched again, from `length` on.
    /// - Throws: `tooLong`, with nothing written; `diskFull`; `system`.
    public func append(_ bytes: UnsafeRawBufferPointer) throws(FileFault) {
        try withState { state throws(FileFault) in
            guard Int64(bytes.count) <= goal.size - state.written.length else { throw .tooLong }
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
                if state.written.length - state.begun >= Self.writeBack {
                    let (begun, end) = (state.begun, state.written.length)
                    file.use { hexlist_begin_write_back($0, begun, end - begun) }
                    state.begun = end
                }
                guard state.written.length % Self.stride == 0 else { continue }
                if !state.isLong || state.written.length % Self.longStride == 0 { try makeDurable(&state) }
                try goal.checkRoom(folder.freeBytes(), for: goal.size - state.written.length)
            }
        }
    }

    /// Fills the partial file, of which nothing is there yet, with what another file has: with the same blocks where the file system can, else
    /// as a copy. The digest is of the bytes that are read meanwhile.
    /// - Parameter progress: called with the bytes so far; `false` ends it.
    /// - Throws: `changed` if the other file has another size than was announced, or changes; `diskFull`, `partLost`, `cancelled`; `system`.
    public func fill(from source: OfferedFile, progress: (_ bytes: Int64) -> Bool = { _ in true }) throws(FileFault) {
        guard source.size == goal.size, length == 0 else { throw .changed }
        let isClone = source.clone(to: file)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: FileDigest.piece, alignment: 16)
        defer { buffer.deallocate() }
        while length < goal.size {
            let offset = length
            let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(Int64(buffer.count), goal.size - offset))])
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

    /// Makes what is there durable, for a pause.
    /// - Returns: the bytes that a later `init` may take as `knownGood`.
    @discardableResult
    public func suspend() throws(FileFault) -> Int64 {
        try withState { state throws(FileFault) in
            try makeDurable(&state)
            return state.durable.length
        }
    }

    /// Checks length and digest, makes all of it durable, and gives it its name, or one with a number that is free. Ends the
    /// object, except where it throws `diskFull`, `tooShort` or what `willRename` throws: then it can be called again.
    /// - Parameter willRename: called before each attempt at a name: afterwards a crash may leave the file under it.
    /// - Throws: `otherBytes`, with the partial file deleted; `tooShort`, `diskFull`, `partLost`, `noFreeName`, `system`; what `willRename`
    ///   throws.
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
            BootID.remove(from: file)
            let placement = try place(willRename)
            state.isEnded = true
            return placement
        }
    }

    /// Takes what another program wrote into the partial file, or put in its place, checks its length, sets its mode, and ends the object: the
    /// file is to get its name together with others (`WholeFile.place`). The time is the one that the program gave it.
    /// - Throws: `tooShort`, `tooLong`; `partLost` where there is no such file; `system`.
    public func takeOver() throws(FileFault) -> WholeFile {
        try withState { state throws(FileFault) in
            let file = try openWritten()
            let status = try file.status()
            let length = Int64(status.st_size)
            guard length == goal.size else { throw length < goal.size ? .tooShort(length) : .tooLong }
            // What has nothing in it may not have been written.
            goal.setModeAndTime(of: file, keepsTime: length > 0)
            BootID.remove(from: file)
            state.isEnded = true
            return WholeFile(goal: goal, device: UInt64(status.st_dev), inode: UInt64(status.st_ino), folder: folder, since: since)
        }
    }

    /// The bytes that another program has written into the partial file so far.
    public func writtenBytes() throws(FileFault) -> Int64 { Int64(try openWritten().status().st_size) }

    private func openWritten() throws(FileFault) -> Descriptor {
        guard let status = try folder.status(of: goal.partName), status.isRegular, status.st_uid == geteuid(), status.st_nlink == 1 else {
            throw .partLost
        }
        return try Descriptor.open(goal.partName, O_RDWR | O_NOFOLLOW | O_NONBLOCK, in: folder)
    }

    /// Checks length and digest, and sets mode and time.
    private func complete(_ state: inout State) throws(FileFault) {
        guard !state.isEnded else { throw .partLost }
        guard state.written.length == goal.size else { throw .tooShort(state.written.length) }
        if let announced = goal.digest, announced != Array(state.written.digest.finalize()) {
            state.isEnded = true
            remove()
            throw .otherBytes
        }
        // A file system that has no modes or such times keeps the file all the same.
        goal.setModeAndTime(of: file)
    }

    /// The SHA-256 of what is there: 32 bytes.
    public var digest: [UInt8] { state.withLock { Array($0.written.digest.finalize()) } }

    /// Deletes the partial file and ends the object.
    public func discard() {
        state.withLock { state in
            guard !state.isEnded else { return }
            state.isEnded = true
            remove()
        }
    }

    // MARK: Without an object

    /// Looks what a crash left of a file whose row has a placement, and deletes what a finished one left of the partial file.
    /// - Parameter path: the folder.
    public static func adopt(folder path: String, goal: Goal, placement: Placement) throws(FileFault) -> Adoption {
        let folder = try Descriptor.open(path, O_RDONLY | O_DIRECTORY)
        let part = try folder.status(of: goal.partName)
        let final = try SharePath.isName(placement.name) ? folder.status(of: placement.name) : nil
        let isOwn = { (status: stat) in UInt64(status.st_dev) == placement.device && UInt64(status.st_ino) == placement.inode }
        if let final, final.isRegular, isOwn(final), Int64(final.st_size) == goal.size {
            // Where the file system cannot rename without replacing, both names are there for a moment.
            if let part, isOwn(part) { _ = folder.use { unlinkat($0, goal.partName, 0) } }
            try folder.synchronize()
            return .finished
        }
        return part == nil ? .gone : .partial
    }

    /// Deletes a partial file, if there is one that is this user's: for a transfer that is cancelled while nothing runs.
    /// - Parameter path: the folder.
    public static func discard(folder path: String, goal: Goal) {
        guard let folder = try? Descriptor.open(path, O_RDONLY | O_DIRECTORY), let part = try? folder.status(of: goal.partName),
            part.isRegular, part.st_uid == geteuid()
        else { return }
        _ = folder.use { unlinkat($0, goal.partName, 0) }
    }

    // MARK: Parts

    private func withState<Result>(_ body: (inout State) throws(FileFault) -> Result) throws(FileFault) -> Result {
        try state.withLock { state throws(FileFault) in
            guard !state.isEnded else { throw .partLost }
            return try body(&state)
        }
    }

    private func makeDurable(_ state: inout State) throws(FileFault) {
        guard state.durable.length < state.written.length else { return }
        do throws(FileFault) {
            // The mark has to be there before anything behind the first `stride`: without it that would be taken for durable.
            if isMarked, !state.isLong { try file.synchronize() } else { try file.synchronizeData() }
        } catch {
            try rewind(&state)
            throw error
        }
        state.durable = state.written
        state.isLong = isMarked
    }

    /// Gives up what the disk did not take: after a failed fsync(2) nobody knows what of it is there.
    private func rewind(_ state: inout State) throws(FileFault) {
        state.written = state.durable
        state.begun = state.durable.length
        try Self.cut(file, to: state.durable.length)
    }

    private static func cut(_ file: Descriptor, to length: Int64) throws(FileFault) {
        while file.use({ ftruncate($0, off_t(length)) }) != 0 {
            guard errno == EINTR else { throw .last }
        }
    }

    private func place(_ willRename: (Placement) throws -> Void) throws -> Placement {
        guard let part = try folder.status(of: goal.partName), UInt64(part.st_ino) == inode, UInt64(part.st_dev) == device else {
            throw FileFault.partLost
        }
        for _ in 1...Self.attempts {
            let name = try goal.name.firstFree { name throws(FileFault) in try folder.status(of: name.description) != nil }
            guard let name else { break }
            let placement = Placement(name: name.description, device: device, inode: inode)
            try willRename(placement)
            guard try rename(to: placement.name) else { continue }
            try folder.synchronize()
            return placement
        }
        throw FileFault.noFreeName
    }

    /// - Returns: whether the name was free.
    private func rename(to name: String) throws(FileFault) -> Bool { try folder.renameNew(goal.partName, to: name) }

    /// Deletes the partial file, unless its name is another file's by now.
    private func remove() {
        guard let part = try? folder.status(of: goal.partName), UInt64(part.st_ino) == inode, UInt64(part.st_dev) == device else { return }
        _ = folder.use { unlinkat($0, goal.partName, 0) }
    }
}
