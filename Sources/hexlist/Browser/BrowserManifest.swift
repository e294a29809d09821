import HexlistAPI
import HexlistJSON

/// The ids of the extension in `Browser/`.
enum BrowserExtension {
    /// The id in Chromium: the first 32 hexadecimal digits of the SHA-256 of the manifest's `key`, with the digits 0 to f written as a to
    /// p.
    static let chromium = "pamclaachjdhfkjccgmdmcncljffaodl"
    /// The id in Firefox, from `browser_specific_settings.gecko.id`.
    static let firefox = "hexlist@hexlist.example.org"
    /// The name of the native messaging host.
    static let host = "hexlist"

    static let origin = "chrome-extension://\(chromium)/"

    /// Whether a browser started this program for the extension.
    /// - Parameter arguments: the command-line arguments. Chromium passes the origin; Firefox passes the path of the manifest and the id.
    static func isCaller(_ arguments: [String]) -> Bool {
        arguments.first == origin || arguments.count == 2 && arguments[1] == firefox
    }
}

/// A supported browser, and the location of its native messaging manifests.
enum Browser: String, CaseIterable {
    case chromium, chrome, brave, edge, vivaldi, firefox, librewolf

    var isFirefox: Bool { self == .firefox || self == .librewolf }

    /// Returns the profile folder of the browser.
    func folder(_ paths: HexlistPaths, home: String) -> String {
        switch self {
        case .chromium: HexlistPaths.join(paths.configurationHome, "chromium")
        case .chrome: HexlistPaths.join(paths.configurationHome, "google-chrome")
        case .brave: HexlistPaths.join(paths.configurationHome, "BraveSoftware/Brave-Browser")
        case .edge: HexlistPaths.join(paths.configurationHome, "microsoft-edge")
        case .vivaldi: HexlistPaths.join(paths.configurationHome, "vivaldi")
        case .firefox: HexlistPaths.join(home, ".mozilla")
        case .librewolf: HexlistPaths.join(home, ".librewolf")
        }
    }

    func manifestFolder(_ paths: HexlistPaths, home: String) -> String {
        HexlistPaths.join(folder(paths, home: home), isFirefox ? "native-messaging-hosts" : "NativeMessagingHosts")
    }
}

/// A native messaging manifest. It names the program, and the extension that may start it. Chromium and Firefox each refuse the members
/// that only the other supports.
struct BrowserManifest: JSONEncodable {
    var path: String
    var isFirefox: Bool

    func write(to json: inout JSONWriter) {
        json.object {
            $0.member("name", BrowserExtension.host)
            $0.member("description", "Hexlist: sends links of the browser to peers, and shows what they sent")
            $0.member("path", path)
            $0.member("type", "stdio")
            if isFirefox {
                $0.member("allowed_extensions", [BrowserExtension.firefox])
            } else {
                $0.member("allowed_origins", [BrowserExtension.origin])
            }
        }
    }
}
