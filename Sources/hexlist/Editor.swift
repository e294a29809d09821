import Glibc
import HexlistModel
import HexlistSystem

/// Lets the user edit a text in an editor. The text is in a temporary file that only this user can read.
enum Editor {
    /// Maximum bytes of the text after editing.
    static let limit = 8 << 20

    /// Returns the editor command, which may contain arguments: `VISUAL`, else `EDITOR`, else the system's `editor` if there is a terminal.
    static func command(visual: String?, editor: String?, hasSystemEditor: Bool) throws(HexlistError) -> String {
        for command in [visual, editor] {
            if let command, !HexSubject.isBlank(command) { return command }
        }
        guard hasSystemEditor else {
            throw HexlistError(.badRequest, "No editor is set.", hint: "Set EDITOR, or use options instead (--help).")
        }
        return systemEditor
    }

    private static let systemEditor = "/usr/bin/editor"

    /// Opens the editor, waits until it exits, and passes the result to `use`.
    /// - Parameter use: receives the edited text and the path of the file. If it throws, the file is kept, so that the edited text is not
    ///   lost.
    static func edit(_ text: String, name: String, _ use: (String, String) async throws -> Void) async throws {
        let command = try command(
            visual: Environment.value("VISUAL"), editor: Environment.value("EDITOR"),
            hasSystemEditor: isatty(STDIN_FILENO) == 1 && access(systemEditor, X_OK) == 0)
        let path = try write(text, name: name)
        do {
            // The shell splits the command into words, as git does. The path is passed as an argument, so the shell does not interpret it.
            let end = try Program("/bin/sh", ["-c", "\(command) \"$1\"", "sh", path]).runHere()
            guard end == .exited(0) else { throw HexlistError(.badRequest, "The editor failed, so nothing was changed.") }
            try await use(read(path), path)
        } catch let error as SystemError {
            remove(path)
            throw HexlistError(.internal, "The editor `\(TerminalText.clean(command, columns: 60))` cannot be started (\(error)).")
        } catch let error as HexlistError {
            // An unchanged file contains nothing that could get lost.
            if let left = try? read(path), PeerTextComparison.areEqual(left, text) {
                remove(path)
            } else {
                StandardError.note("Your text is kept in \(path)")
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
            throw HexlistError(.badRequest, "\(path) is not readable text, so nothing was changed.")
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
