import Glibc
import HexlistModel
import HexlistSystem

/// The user's editor on a text, in a file that nobody else can read.
enum Editor {
    /// The most bytes of an edited text.
    static let limit = 8 << 20

    /// The command of the editor: `VISUAL`, `EDITOR`, or on a terminal what the system has as `editor`. May have arguments.
    static func command(visual: String?, editor: String?, hasSystemEditor: Bool) throws(HexlistError) -> String {
        for command in [visual, editor] {
            if let command, !HexSubject.isBlank(command) { return command }
        }
        guard hasSystemEditor else {
            throw HexlistError(.badRequest, "No editor is set.", hint: "Set EDITOR, or say what to change with flags (--help).")
        }
        return systemEditor
    }

    private static let systemEditor = "/usr/bin/editor"

    /// Has a text edited.
    /// - Parameter use: takes the edited text. The file stays where it throws, so that nothing of what was written is lost.
    static func edit(_ text: String, name: String, _ use: (String, String) async throws -> Void) async throws {
        let command = try command(
            visual: Environment.value("VISUAL"), editor: Environment.value("EDITOR"),
            hasSystemEditor: isatty(STDIN_FILENO) == 1 && access(systemEditor, X_OK) == 0)
        let path = try write(text, name: name)
        do {
            // A shell takes the command apart, as other programs have it, and gets the path as an argument.
            let end = try Program("/bin/sh", ["-c", "\(command) \"$1\"", "sh", path]).runHere()
            guard end == .exited(0) else { throw HexlistError(.badRequest, "The editor did not end well: nothing was changed.") }
            try await use(read(path), path)
        } catch let error as SystemError {
            remove(path)
            throw HexlistError(.internal, "The editor `\(TerminalText.clean(command, columns: 60))` cannot be started (\(error)).")
        } catch let error as HexlistError {
            // Nothing was written that could be lost.
            if let left = try? read(path), PeerText.areEqual(left, text) {
                remove(path)
            } else {
                StandardError.note("What was written is kept in \(path)")
            }
            throw error
        }
        remove(path)
    }

    private static func write(_ text: String, name: String) throws(HexlistError) -> String {
        let folder = Environment.temporaryFolder
        var template = Array("\(folder)/hexlist-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw failed(folder) }  // mode 0700
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self) + "/\(name)"
        let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failed(path) }
        defer { close(descriptor) }
        do { try BlockingWrite.write(Array(text.utf8), to: descriptor) } catch { throw failed(path, error) }
        return path
    }

    private static func read(_ path: String) throws(HexlistError) -> String {
        do {
            return try SmallFile.read(path, limit: limit)
        } catch {
            throw HexlistError(.badRequest, "\(path) cannot be read as text: nothing was changed.")
        }
    }

    private static func remove(_ path: String) {
        unlink(path)
        if let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) { rmdir(String(path[..<slash])) }
    }

    private static func failed(_ path: String, _ error: SystemError = .last) -> HexlistError {
        HexlistError(
            .internal, "\(path) cannot be written (\(error)).", hint: "Set TMPDIR to a folder you can write to.")
    }
}
