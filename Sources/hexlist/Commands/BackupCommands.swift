import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import HexlistSystem

struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Write the whole store and the identity into one file.",
        discussion: """
            The daemon makes it, as of one moment, and goes on receiving meanwhile. It contains this machine's private key: keep it where \
            nobody else can read it. `hexlist restore` takes it.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Replace a file that is there.")
    var force = false

    @Argument(help: ArgumentHelp("The file to write; it gets mode 0600.", valueName: "file"))
    var file: String

    private struct Done: Encodable, JSONEncodable {
        var file: String
        var bytes: Int64
    }

    func run() async throws {
        let output = common.output
        guard force || access(file, F_OK) != 0 else {
            throw HexlistError(.badRequest, "\(file) is there already.", hint: "Name another file, or replace it with --force.")
        }
        let progress = ProgressLine()
        let target = try NewFile(path: file)
        let bytes: Int64
        do {
            bytes = try await progress.during("hexlistd copies its store …") {
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
            try output.object(Done(file: file, bytes: bytes))
        } else {
            try output.wrapped("\(file), \(ByteCountText.of(bytes)), has the store and the identity of this machine.")
            try output.wrapped("It contains the private key: keep it where nobody else can read it.")
        }
        try output.flush()
    }
}

struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Put a backup back on a machine whose daemon is stopped.",
        discussion: """
            This machine then is the one the backup is of: its identity, inbox, My Hexlist, peers and outbox. What is here is not deleted \
            but moved into a folder beside it. Two machines may not run one identity: where the other one goes on, run `hexlist id \
            rotate` on one of the two.
            """)

    @Option(name: .long, help: ArgumentHelp("The daemon's state folder.", valueName: "path"))
    var stateDir: String?

    @Flag(help: "Do not ask.")
    var yes = false

    @Argument(help: ArgumentHelp("What `hexlist backup` wrote.", valueName: "file"))
    var file: String

    func run() async throws {
        guard access(file, R_OK) == 0 else {
            throw HexlistError(.badRequest, "\(file) cannot be read (\(String(cString: strerror(errno)))).")
        }
        guard let daemon = InstalledDaemon.path() else {
            throw HexlistError(
                .internal, "hexlistd, which restores, is neither beside hexlist nor where the system has its programs.",
                hint: "Run `hexlistd --restore FILE` where it is installed.")
        }
        if !yes {
            guard isatty(STDIN_FILENO) == 1 else {
                throw HexlistError(.badRequest, "There is no terminal to ask on.", hint: "--yes restores without asking.")
            }
            let folder = HexlistPaths(environment: Environment.variables, stateFolder: stateDir).stateFolder
            StandardError.note("This machine becomes the one the backup is of. What is in \(folder) is moved aside.")
            StandardError.note(
                "Two machines may not run one identity: if the other one still runs, stop it for good, or rotate one of the two.")
            try Terminal.confirm("Restore \(file)? [y/N]")
        }
        let program = Program(daemon, ["--restore", file] + (stateDir.map { ["--state-dir", $0] } ?? []))
        let end: Program.End
        do {
            end = try program.runHere()
        } catch {
            throw HexlistError(.internal, "\(daemon) cannot be started (\(error.description)).")
        }
        guard end != .exited(0) else { return }
        throw Ending(status: end == .exited(Int(ExitStatus.usage.rawValue)) ? .usage : .failed)
    }
}

/// A file that is whole under its name or not there, with mode 0600. It has no name until it is whole, so that whatever ends the process
/// leaves nothing; on a file system without such files it has another name beside it.
final class NewFile {
    private let path: String
    private let making: String
    private let descriptor: CInt
    private var isNamed: Bool

    /// Linux's O_TMPFILE, which Glibc's module leaves out.
    private static let unnamed = O_DIRECTORY | 0o20_000_000

    init(path: String) throws {
        self.path = path
        making = "\(path).\(getpid()).part"
        // A file without a name can only be given one through /proc.
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
            // A link takes no other file's place, as a rename does.
            guard linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, making, AT_SYMLINK_FOLLOW) == 0 else { throw Self.fault(path) }
            isNamed = true
        }
        guard rename(making, path) == 0 else { throw Self.fault(path) }
    }

    func discard() { if isNamed { unlink(making) } }

    private static func fault(_ path: String, _ error: SystemError = .last) -> HexlistError {
        HexlistError(
            .internal, "\(path) cannot be written (\(error)).", hint: "Is there such a folder, and room in it?")
    }
}
