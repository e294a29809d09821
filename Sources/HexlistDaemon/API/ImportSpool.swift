import HexlistAPI
import HexlistModel
import HexlistStore
import HexlistSystem
import HexlistWire
import Synchronization

/// Reads the body of an import, one HexJM per line, into a temporary file in the state folder. The store then reads the hexes from that
/// file one by one. The memory use is one line, two buffers, and 48 bytes per hex. The size limit of an import allows 200 000 hexes.
struct ImportReader {
    private var spooled: SpooledImport
    private let diskReserve: Int64
    private var weight = 0
    private var decoder = WrapperDecoder()
    private var splitter = LineSplitter(limit: ProtocolLimits.largestFrameBytes)
    /// The lines that are not written to the file yet.
    private var buffer: [UInt8] = []

    private static let bufferBytes = 256 << 10

    /// - Parameter diskReserve: number of bytes that have to stay free on the file system.
    /// - Throws: `storageFull`; `internal` if the folder is not writable.
    init(folder: String, diskReserve: Int64) throws(HexlistError) {
        do throws(SystemError) {
            spooled = SpooledImport(file: try UnnamedFile(in: folder))
        } catch {
            throw Self.fault(error)
        }
        self.diskReserve = diskReserve
    }

    /// Reads the next bytes of the body.
    /// - Throws: `tooLarge` above `LocalAPI.importWeight`; `storageFull`; `internal` if the file cannot be written.
    mutating func feed(_ bytes: UnsafeRawBufferPointer) throws(HexlistError) {
        for (number, line) in splitter.lines(bytes) { try take(number, line) }
    }

    /// Reads the last line, which may have no line end. Returns the complete import.
    mutating func finish() throws(HexlistError) -> SpooledImport {
        for (number, line) in splitter.lastLine() { try take(number, line) }
        try flush()
        return spooled
    }

    private mutating func take(_ number: Int, _ line: [UInt8]?) throws(HexlistError) {
        guard let line else {
            let message = "the line is longer than \(ProtocolLimits.largestFrameBytes) bytes"
            return refuse(BulkRefusal(line: number, code: RefusalCode.tooLarge.rawValue, message: message))
        }
        if line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) { return }
        switch decoder.decodeHex(line, acceptsLocalNames: true) {
        case .failure(let refusal): refuse(BulkRefusal(line: number, code: refusal.code.rawValue, message: refusal.message))
        case .success(let hex):
            let entry = ImportEntry(hex.content)
            weight += entry.weight
            guard weight <= LocalAPI.importWeight else {
                throw HexlistError(
                    .tooLarge, "The import is larger than \(LocalAPI.importWeight >> 20) MiB.", hint: "Nothing was imported. Split it.")
            }
            spooled.add(entry, bytes: line.count)
            buffer += line
            if buffer.count >= Self.bufferBytes { try flush() }
        }
    }

    private mutating func flush() throws(HexlistError) {
        if let free = spooled.file.freeBytes, diskReserve > 0, free - Int64(buffer.count) < diskReserve { throw Self.full }
        do throws(SystemError) {
            try spooled.file.append(buffer)
        } catch {
            throw Self.fault(error)
        }
        buffer.removeAll(keepingCapacity: true)
    }

    private mutating func refuse(_ refusal: BulkRefusal) {
        if spooled.refused.count < LocalAPI.importRefusals { spooled.refused.append(refusal) } else { spooled.unlisted += 1 }
    }

    private static let full = HexlistError(
        .storageFull, "The disk has no space for the import.", hint: "Nothing was imported. Free disk space.")

    private static func fault(_ error: SystemError) -> HexlistError {
        guard !error.isDiskFull else { return full }
        return HexlistError(
            .internal, "A temporary file in the state folder cannot be written (\(error)).",
            hint: "Nothing was imported. Is the folder writable?")
    }
}

/// An import whose hexes are in a temporary file, with the lines that were refused.
struct SpooledImport: ImportSource {
    fileprivate let file: UnnamedFile
    private(set) var entries: [ImportEntry] = []
    /// The offsets in the file at which the lines of the entries end.
    private var ends: [Int] = []
    fileprivate(set) var refused: [BulkRefusal] = []
    /// Number of further refused lines, which are not in `refused` because it has its maximum size.
    fileprivate(set) var unlisted = 0
    private let window = Window()

    fileprivate init(file: UnnamedFile) { self.file = file }

    fileprivate mutating func add(_ entry: ImportEntry, bytes: Int) {
        entries.append(entry)
        ends.append((ends.last ?? 0) + bytes)
    }

    func hex(_ index: Int) throws -> HexContent {
        let line = (index == 0 ? 0 : ends[index - 1])..<ends[index]
        guard let hex = try? window.hex(line, of: file, bytes: ends.last ?? 0) else {
            throw HexlistError(.internal, "The temporary file of the import cannot be read.", hint: "Nothing was imported. Try again.")
        }
        return hex
    }

    /// A read buffer with the part of the file around the last read line, because the store reads the hexes forwards and then backwards.
    private final class Window: Sendable {
        private struct State {
            var decoder = WrapperDecoder()
            var bytes: [UInt8] = []
            var start = 0
        }

        private struct Undecodable: Error {}

        private static let margin = 64 << 10
        private let state = Mutex(State())

        /// Decodes the hex in a line of the file.
        /// - Parameter bytes: the length of the file.
        func hex(_ line: Range<Int>, of file: UnnamedFile, bytes: Int) throws -> HexContent {
            try state.withLock { state in
                if line.lowerBound < state.start || line.upperBound > state.start + state.bytes.count {
                    let range = max(0, line.lowerBound - Self.margin)..<min(bytes, line.upperBound + Self.margin)
                    state.bytes = []
                    state.bytes = try file.read(range.count, at: range.lowerBound)
                    state.start = range.lowerBound
                }
                let json = Array(state.bytes[line.lowerBound - state.start..<line.upperBound - state.start])
                guard case .success(let hex) = state.decoder.decodeHex(json, acceptsLocalNames: true) else { throw Undecodable() }
                return hex.content
            }
        }
    }
}
