import Glibc
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistSystem

/// `hexlist browser --install` and `--remove`: the host manifests of a user.
struct BrowserInstallation {
    /// The line by which the program of the manifests is known.
    private static let sign = "# Made by `hexlist browser --install`."

    let common: CommonOptions
    /// The browsers that were named; empty for each that is there.
    let browsers: [Browser]

    /// The program that browsers run: manifests carry no arguments.
    private var program: String { HexlistPaths.join(HexlistPaths.folder(of: common.paths.configurationFile), "hexlist-browser") }

    private func manifest(_ browser: Browser) -> String {
        HexlistPaths.join(browser.manifestFolder(common.paths, home: userHome), "\(BrowserExtension.host).json")
    }

    private var userHome: String {
        Environment.value("HOME").flatMap { $0.isEmpty ? nil : $0 } ?? HexlistPaths.folder(of: common.paths.configurationHome)
    }

    func install() throws {
        let chosen = try chosen()
        let others = ([program] + chosen.map(manifest)).filter(isOfOthers)
        guard others.isEmpty else {
            throw HexlistError(
                .badRequest,
                "\(others.map { TerminalText.clean($0) }.joined(separator: ", ")) is there already, and this command did not make it.",
                hint: "It stays. Move it away, then run this again.")
        }
        try OwnFile.makeFolders(HexlistPaths.folder(of: program))
        try OwnFile.write(script, to: program, mode: 0o755)
        var written: [String] = []
        for browser in chosen {
            let path = manifest(browser)
            try OwnFile.makeFolders(HexlistPaths.folder(of: path))
            let manifest = BrowserManifest(path: program, isFirefox: browser.isFirefox)
            try OwnFile.write(manifest.jsonText + "\n", to: path, mode: 0o644)
            written.append(path)
        }
        try tell(written: [program] + written, removed: [])
        for line in Self.next(chosen, folder: HexlistPaths.isFolder(Self.packaged) ? Self.packaged : nil) { StandardError.note(line) }
    }

    /// The folder in which the package has the extension.
    private static let packaged = "/usr/share/hexlist/browser"

    /// How the extension is loaded.
    /// - Parameter folder: where it is; `nil` where only the sources have it.
    static func next(_ browsers: [Browser], folder: String?) -> [String] {
        var lines = ["Now load the extension from \(folder ?? "the folder Browser of the sources"):"]
        if browsers.contains(where: { !$0.isFirefox }) {
            lines.append("Chromium and its kin: chrome://extensions, Developer mode, Load unpacked, that folder.")
        }
        if browsers.contains(where: \.isFirefox) {
            lines.append(
                "Firefox: about:debugging#/runtime/this-firefox, Load Temporary Add-on, manifest.json in that folder; until Firefox is closed."
            )
        }
        return lines
    }

    /// Whether something is at a path that --install did not write: a program without its sign, or a manifest that does not name the
    /// extension.
    private func isOfOthers(_ path: String) -> Bool {
        switch Result(catching: { () throws(SmallFile.Fault) in try SmallFile.read(path, limit: 64 << 10) }) {
        case .success(let text):
            let marks = path == program ? [Self.sign] : [BrowserExtension.chromium, BrowserExtension.firefox]
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
                "No browser has a folder in \(TerminalText.clean(common.paths.configurationHome)) or \(TerminalText.clean(userHome)).",
                hint: "Say for which one: `hexlist browser --install --chromium`, or --firefox.")
        }
        return there
    }

    func remove() throws {
        var removed: [String] = []
        for path in (browsers.isEmpty ? Browser.allCases : browsers).map(manifest) where !isOfOthers(path) && unlink(path) == 0 {
            removed.append(path)
        }
        // The program goes with the last manifest that names it.
        if !Browser.allCases.contains(where: { access(manifest($0), F_OK) == 0 }), !isOfOthers(program), unlink(program) == 0 {
            removed.append(program)
        }
        try tell(written: [], removed: removed)
    }

    private func tell(written: [String], removed: [String]) throws {
        let output = common.output
        if output.json {
            try output.object(Shape(written: written, removed: removed))
        } else {
            for path in written { try output.line("wrote \(path)") }
            for path in removed { try output.line("removed \(path)") }
            if written.isEmpty, removed.isEmpty { try output.line("There was nothing to remove.") }
        }
        try output.flush()
    }

    /// A browser of the desktop does not know what was named in a shell, so the script says it.
    private var script: String {
        var words = [NotifySend.ownPath, "browser"]
        if common.paths.socketIsNamed { words += ["--socket", HexlistPaths.absolute(common.paths.socket)] }
        if common.paths.stateFolderIsNamed { words += ["--state-dir", HexlistPaths.absolute(common.paths.stateFolder)] }
        return """
            #!/bin/sh
            \(Self.sign) Browsers run it for the extension.
            exec \(words.map(ShellText.quoted).joined(separator: " ")) -- "$@"

            """
    }

    private struct Shape: Encodable, JSONEncodable {
        var written: [String]
        var removed: [String]
    }
}
