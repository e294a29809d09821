import HexlistAPI
import HexlistSystem

/// Finds the user's folder for downloads, according to xdg-user-dirs.
enum DownloadFolder {
    /// Maximum bytes of the file user-dirs.dirs.
    private static let limit = 64 << 10

    /// Returns the path of the download folder: `XDG_DOWNLOAD_DIR` in the environment or in user-dirs.dirs, otherwise `~/Downloads`. A
    /// value that is the home folder itself is ignored, because it means that the user has no download folder (xdg-user-dirs).
    /// - Parameter configurationHome: the folder that contains user-dirs.dirs.
    static func path(environment: [String: String], configurationHome: String) -> String {
        let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? HexlistPaths.homeFolder()
        if let path = environment["XDG_DOWNLOAD_DIR"], path.hasPrefix("/"), !isSame(path, home) { return path }
        let text = (try? SmallFile.read("\(configurationHome)/user-dirs.dirs", limit: limit)) ?? ""
        return path(in: text, home: home) ?? HexlistPaths.join(home, "Downloads")
    }

    /// Returns the path in a line `XDG_DOWNLOAD_DIR="$HOME/Downloads"` of user-dirs.dirs; `nil` if there is none. A value begins with
    /// `$HOME/` or `/`, and a backslash escapes the next character.
    static func path(in text: String, home: String) -> String? {
        let lines = text.split(separator: "\n").map { $0.trimmingPrefix(while: \.isWhitespace) }
        guard let line = lines.last(where: { $0.hasPrefix("XDG_DOWNLOAD_DIR=\"") }) else { return nil }
        var value = ""
        var isEscaped = false
        for character in line.dropFirst("XDG_DOWNLOAD_DIR=\"".count) {
            if !isEscaped, character == "\"" { break }
            isEscaped = !isEscaped && character == "\\"
            if !isEscaped { value.append(character) }
        }
        if value.hasPrefix("$HOME/") { value = HexlistPaths.join(home, String(value.dropFirst("$HOME/".count))) }
        return value.hasPrefix("/") && !isSame(value, home) ? value : nil
    }

    /// Whether two absolute paths are equal, ignoring repeated slashes and slashes at the end.
    private static func isSame(_ one: String, _ other: String) -> Bool { one.split(separator: "/") == other.split(separator: "/") }
}
