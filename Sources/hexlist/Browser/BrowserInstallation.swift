import Glibc
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistSystem

/// Implements `hexlist browser --install` and `--remove`, which write and delete the native messaging manifests of one user.
struct BrowserInstallation {
    /// A comment line in the script, which shows that this command wrote it.
    private static let marker = "# Made by `hexlist browser --install`."

    let common: CommonOptions
    /// The browsers given by the user; empty for all installed ones.
    let browsers: [Browser]

    /// The path of the script that browsers start. A script is needed because a manifest cannot contain arguments.
    private var program: String { HexlistPaths.join(HexlistPaths.folder(of: common.paths.configurationFile), "hexlist-browser") }

    private func manifest(_ browser: Browser) -> String {
        HexlistPaths.join(browser.manifestFolder(common.paths, home: userHome), "\(BrowserExtension.host).json")
    }

    private var userHome: String {
        Environment.value("HOME").flatMap { $0.isEmpty ? nil : $0 } ?? HexlistPaths.folder(of: common.paths.configurationHome)
    }

    func install() throws {
        let chosen = try chosen()
        let others = ([program] + chosen.map(manifest)).filter(isForeign)
        guard others.isEmpty else {
            throw HexlistError(
                .badRequest,
                "\(others.map { TerminalText.clean($0) }.joined(separator: ", ")) already exists, and this command did not make it.",
                hint: "Nothing was changed. Move it away, then run this again.")
        }
        try FileWriter.makeFolders(HexlistPaths.folder(of: program))
        try FileWriter.write(script, to: program, mode: 0o755)
        var written: [String] = []
        for browser in chosen {
            let path = manifest(browser)
            try FileWriter.makeFolders(HexlistPaths.folder(of: path))
            let manifest = BrowserManifest(path: program, isFirefox: browser.isFirefox)
            try FileWriter.write(manifest.jsonText + "\n", to: path, mode: 0o644)
            written.append(path)
        }
        try report(written: [program] + written, removed: [])
        for line in Self.next(chosen, folder: HexlistPaths.isFolder(Self.packaged) ? Self.packaged : nil) { StandardError.note(line) }
    }

    /// The folder in which the package installs the extension.
    private static let packaged = "/usr/share/hexlist/browser"

    /// Returns instructions for loading the extension.
    /// - Parameter folder: the folder of the extension; `nil` if only the source code has it.
    static func next(_ browsers: [Browser], folder: String?) -> [String] {
        var lines = ["Now load the extension from \(folder ?? "the folder Browser of the source code"):"]
        if browsers.contains(where: { !$0.isFirefox }) {
            lines.append("Chromium and its relatives: chrome://extensions, Developer mode, Load unpacked, that folder.")
        }
        if browsers.contains(where: \.isFirefox) {
            lines.append(
                "Firefox: about:debugging#/runtime/this-firefox, Load Temporary Add-on, manifest.json in that folder; until Firefox is closed."
            )
        }
        return lines
    }

    /// Whether the file at a path was not written by `--install`: a script without the marker, or a manifest for another extension.
    private func isForeign(_ path: String) -> Bool {
        switch Result(catching: { () throws(SmallFile.Fault) in try SmallFile.read(path, limit: 64 << 10) }) {
        case .success(let text):
            let marks = path == program ? [Self.marker] : [BrowserExtension.chromium, BrowserExtension.firefox]
            return !marks.contains { text.contains($0) }
        case .failure(.missing): return false
        case .failure: return true
        }
    }

    private func chosen() throws(HexlistError) -> [Browser] {
        guard browsers.isEmpty else { return browsers }
        let there = Browser.allCases.filter { HexlistPaths.isFolder($0.folder(common.paths, home: userHome)) }
        guard !there.isEmpty else {
            throw HexlistError(
                .badRequest,
                "Found no browser in \(TerminalText.clean(common.paths.configurationHome)) or \(TerminalText.clean(userHome)).",
                hint: "Which one? `hexlist browser --install --chromium`, or --firefox.")
        }
        return there
    }

    func remove() throws {
        var removed: [String] = []
        for path in (browsers.isEmpty ? Browser.allCases : browsers).map(manifest) where !isForeign(path) && unlink(path) == 0 {
            removed.append(path)
        }
        // The script is deleted together with the last manifest.
        if !Browser.allCases.contains(where: { access(manifest($0), F_OK) == 0 }), !isForeign(program), unlink(program) == 0 {
            removed.append(program)
        }
        try report(written: [], removed: removed)
    }

    private func report(written: [String], removed: [String]) throws {
        let output = common.output
        if output.json {
            try output.object(ChangesJSON(written: written, removed: removed))
        } else {
            for path in written { try output.line("wrote \(path)") }
            for path in removed { try output.line("removed \(path)") }
            if written.isEmpty, removed.isEmpty { try output.line("Nothing to remove.") }
        }
        try output.flush()
    }

    /// The content of the script. Includes the socket and state folder of this command line, because the browser does not know them.
    private var script: String {
        var words = [NotifySend.ownPath, "browser"]
        if common.paths.socketIsNamed { words += ["--socket", HexlistPaths.absolute(common.paths.socket)] }
        if common.paths.stateFolderIsNamed { words += ["--state-dir", HexlistPaths.absolute(common.paths.stateFolder)] }
        return """
            #!/bin/sh
            \(Self.marker) Browsers run it for the extension.
            exec \(words.map(ShellText.quoted).joined(separator: " ")) -- "$@"

            """
    }

    private struct ChangesJSON: Encodable, JSONEncodable {
        var written: [String]
        var removed: [String]
    }
}
