import Glibc
import HexlistAPI
import HexlistModel
import HexlistSystem

/// Reads and writes the clipboard of the desktop, with wl-clipboard on Wayland, and xclip or xsel on X11.
enum Clipboard {
    /// A clipboard program with its command lines for reading and writing.
    struct Tool: Equatable {
        var name: String
        var read: [String]
        var write: [String]
    }

    /// Maximum bytes read from the clipboard.
    private static let byteLimit = LocalAPI.bodyBytes
    /// Timeout in milliseconds for the application that owns the clipboard to deliver its content.
    private static let timeout: Int64 = 5_000

    /// Returns the tools to try, in order of preference.
    static func tools(hasWayland: Bool, hasX11: Bool) -> [Tool] {
        let wayland = Tool(name: "wl-copy", read: ["wl-paste", "--no-newline", "--type", "text"], write: ["wl-copy"])
        let x11 = [
            Tool(
                name: "xclip", read: ["xclip", "-selection", "clipboard", "-out"], write: ["xclip", "-selection", "clipboard", "-in"]),
            Tool(name: "xsel", read: ["xsel", "--clipboard", "--output"], write: ["xsel", "--clipboard", "--input"]),
        ]
        return (hasWayland ? [wayland] : []) + (hasX11 ? x11 : [])
    }

    /// Returns the text on the clipboard.
    /// - Throws: `HexlistError` if there is no desktop, no tool, or no text.
    static func read() async throws -> String {
        let tool = try tool()
        let outcome = await Program(tool.path, Array(tool.tool.read.dropFirst())).run(
            environment: DesktopPrograms.environment, milliseconds: timeout, outputBytes: byteLimit)
        guard outcome.end == .exited(0), let text = String(validating: outcome.output, as: UTF8.self), !HexSubject.isBlank(text) else {
            throw HexlistError(.badRequest, "The clipboard contains no text.")
        }
        return text
    }

    /// Copies a text to the clipboard.
    /// - Throws: `HexlistError` if there is no desktop or no tool, or if the tool fails.
    static func write(_ text: String) throws {
        let tool = try tool(writes: true)
        // The tool keeps running in the background to serve the text, therefore it must not inherit standard output. The text is passed in
        // a file, because all users of the machine can read the arguments of a process.
        var path = Array("\(Environment.temporaryFolder)/hexlist-XXXXXX".utf8CString)
        let descriptor = mkstemp(&path)
        guard descriptor >= 0 else { throw failed(tool.tool, SystemError.last.description) }
        let file = String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer {
            close(descriptor)
            unlink(file)
        }
        let end: Program.Termination
        do {
            try BlockingWrite.write(Array(text.utf8), to: descriptor)
            end = try Program(
                "/bin/sh",
                ["-c", #"file=$1; shift; exec "$@" <"$file" >/dev/null 2>&1"#, "sh", file, tool.path] + tool.tool.write.dropFirst()
            ).runHere()
        } catch {
            throw failed(tool.tool, error.description)
        }
        guard end == .exited(0) else { throw failed(tool.tool, "\(end)") }
    }

    private static func tool(writes: Bool = false) throws(HexlistError) -> (tool: Tool, path: String) {
        let tools = tools(hasWayland: isSet("WAYLAND_DISPLAY"), hasX11: isSet("DISPLAY"))
        guard !tools.isEmpty else {
            throw HexlistError(
                .notSupported, "There is no clipboard without a desktop session.",
                hint: writes ? "`hexlist show HEX` prints the links." : "Use a pipe: `… | hexlist send --to PEER -`.")
        }
        for tool in tools {
            if let path = DesktopPrograms.path(of: writes ? tool.write[0] : tool.read[0]) { return (tool, path) }
        }
        throw HexlistError(
            .notSupported, "No program for the clipboard is installed.",
            hint: "sudo apt install \(isSet("WAYLAND_DISPLAY") ? "wl-clipboard" : "xclip")")
    }

    private static func isSet(_ variable: String) -> Bool { !(Environment.value(variable) ?? "").isEmpty }

    private static func failed(_ tool: Tool, _ reason: String) -> HexlistError {
        HexlistError(.internal, "\(tool.name) failed (\(reason)).")
    }
}
