import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import HexlistSystem

struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Write inbox, My Hexlist, outbox, peers and identity to one file.",
        discussion: """
            The daemon makes a consistent snapshot and keeps running. It contains the private key of this machine: keep it where nobody \
            else can read it. To restore: `hexlist restore`.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Overwrite an existing file.")
    var force = false

    @Argument(help: ArgumentHelp("The file to write, with mode 0600; - writes to standard output.", valueName: "file"), completion: .file())
    var file: String

    private struct ResultJSON: Encodable, JSONEncodable {
        var file: String
        var bytes: Int64
    }

    func validate() throws {
        if file == "-", common.json { throw ValidationError("Leave out --json with -: the backup itself goes to standard output.") }
    }

    func run() async throws {
        let output = common.output
        if file == "-" { return try await writeToOutput(output) }
        guard force || access(file, F_OK) != 0 else {
            throw HexlistError(.badRequest, "\(file) already exists.", hint: "Choose another name, or overwrite it with --force.")
        }
        let progress = ProgressLine()
        let target = try AtomicFile(path: file)
        let bytes: Int64
        do {
            bytes = try await progress.during("copying …") {
                try await common.withClient { client in
                    var written: Int64 = 0
                    try await client.backup { piece, total in
                        try piece.withUnsafeReadableBytes { try target.write($0) }
                        written += Int64(piece.readableBytes)
                        progress.update("\(ByteCountText.of(written)) of \(ByteCountText.of(total)), \(written * 100 / max(1, total)) %")
                    }
                    return written
                }
            }
            try target.finish()
        } catch {
            target.discard()
            throw error
        }
        if output.json {
            try output.object(ResultJSON(file: file, bytes: bytes))
        } else {
            try output.wrapped("\(file), \(ByteCountText.of(bytes)), is a backup of this machine and its identity.")
            try output.wrapped("It contains the private key: keep it in a place that only you can read.")
        }
        try output.flush()
    }
}

extension BackupCommand {
    /// Writes the backup to standard output. Throws if the backup is incomplete, so that a pipeline with `pipefail` fails.
    private func writeToOutput(_ output: Output) async throws {
        guard !output.terminal.isInteractive else {
            throw HexlistError(.badRequest, "A backup is binary and not for a terminal.", hint: "Write it to a pipe or a file.")
        }
        let progress = ProgressLine()
        try await progress.during("copying …") {
            try await common.withClient { client in
                var written: Int64 = 0
                try await client.backup { piece, total in
                    try output.bytes(Array(piece.readableBytesView))
                    written += Int64(piece.readableBytes)
                    progress.update("\(ByteCountText.of(written)) of \(ByteCountText.of(total)), \(written * 100 / max(1, total)) %")
                }
            }
        }
        try output.flush()
    }
}

struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Restore a backup on a machine whose daemon is stopped.",
        discussion: """
            This machine takes over the identity, inbox, My Hexlist, peers and outbox of the backup. Existing data is not deleted but \
            moved to a folder next to it. Two machines cannot share an identity: if the other machine continues to run, run `hexlist id \
            rotate` on one of them.
            """)

    @Option(name: .long, help: ArgumentHelp("The daemon's state folder.", valueName: "path"))
    var stateDir: String?

    @Flag(help: "Do not ask.")
    var yes = false

    @Argument(help: ArgumentHelp("A file from `hexlist backup`.", valueName: "file"), completion: .file())
    var file: String

    func run() async throws {
        guard access(file, R_OK) == 0 else {
            throw HexlistError(.badRequest, "\(file) cannot be read (\(String(cString: strerror(errno)))).")
        }
        guard let daemon = InstalledDaemon.path() else {
            throw HexlistError(
                .internal, "Cannot find hexlistd, which restores backups.",
                hint: "Run `hexlistd --restore FILE` where it is installed.")
        }
        if !yes {
            guard try Self.isBackup(file) else {
                throw HexlistError(.badRequest, "\(file) is not a backup of Hexlist.", hint: "Give a file from `hexlist backup`.")
            }
            guard isatty(STDIN_FILENO) == 1 else {
                throw HexlistError(
                    .badRequest, "This replaces the data of this machine, and there is no terminal to confirm it.",
                    hint: "To do it without a question: --yes.")
            }
            let folder = HexlistPaths(environment: Environment.variables, stateFolder: stateDir).stateFolder
            StandardError.note("This machine takes over the identity and data of the backup. \(folder) is moved aside.")
            StandardError.note(
                "Two machines cannot share an identity: if the other one still runs, stop it for good, or run `hexlist id rotate` on one of them."
            )
            try Terminal.confirm("Restore \(file)? [y/N]")
        }
        let program = Program(daemon, ["--restore", file] + (stateDir.map { ["--state-dir", $0] } ?? []))
        let end: Program.Termination
        do {
            end = try program.runHere()
        } catch {
            throw HexlistError(.internal, "\(daemon) cannot be started (\(error.description)).")
        }
        guard end != .exited(0) else { return }
        throw SilentExit(status: end == .exited(Int(ExitStatus.usage.rawValue)) ? .usage : .failed)
    }
}

extension RestoreCommand {
    /// Whether a file begins like a backup: a SQLite database with the application id `HexB`. hexlistd validates the rest.
    static func isBackup(_ path: String) throws -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw InputFile.unreadable(path) }
        defer { close(descriptor) }
        let header = try InputFile.piece(descriptor, bytes: 100, path: path)
        return header.starts(with: "SQLite format 3\0".utf8) && header.dropFirst(68).starts(with: "HexB".utf8)
    }
}

/// Writes a file with mode 0600 that becomes visible only once it is complete. Until then the file has no name (O_TMPFILE), so that nothing
/// is left after a crash. On file systems without O_TMPFILE it has a temporary name.
final class AtomicFile {
    private let path: String
    private let making: String
    private let descriptor: CInt
    private var isNamed: Bool

    /// The value of O_TMPFILE, which the Glibc module does not export.
    private static let unnamed = O_DIRECTORY | 0o20_000_000

    init(path: String) throws {
        self.path = path
        making = "\(path).\(getpid()).part"
        // Giving a name to an unnamed file requires /proc.
        let canBeNamed = access("/proc/self/fd", X_OK) == 0
        let unnamed = canBeNamed ? open(HexlistPaths.folder(of: path), Self.unnamed | O_WRONLY | O_CLOEXEC, 0o600) : -1
        isNamed = unnamed < 0
        descriptor = unnamed >= 0 ? unnamed : open(making, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Self.fault(path) }
    }

    deinit { close(descriptor) }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        do { try BlockingWrite.write(bytes, to: descriptor) } catch { throw Self.fault(path, error) }
    }

    func finish() throws {
        guard fsync(descriptor) == 0 || errno == EINVAL else { throw Self.fault(path) }
        if !isNamed {
            // linkat cannot replace an existing file; the rename below can.
            guard linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, making, AT_SYMLINK_FOLLOW) == 0 else { throw Self.fault(path) }
            isNamed = true
        }
        guard rename(making, path) == 0 else { throw Self.fault(path) }
    }

    func discard() { if isNamed { unlink(making) } }

    private static func fault(_ path: String, _ error: SystemError = .last) -> HexlistError {
        HexlistError(
            .internal, "\(path) cannot be written (\(error)).", hint: "Check that the folder exists and the disk is not full.")
    }
}
