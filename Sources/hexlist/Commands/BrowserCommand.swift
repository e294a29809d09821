import ArgumentParser
import Glibc
import HexlistClient
import HexlistJSON
import HexlistModel

/// The command `hexlist browser`: runs the native messaging host for the extension in `Browser/`.
struct BrowserCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "browser", abstract: "Connect the browser extension to the daemon.",
        discussion: """
            hexlist browser --install --chromium --firefox

            The extension sends tabs, links and bookmarks, and shows what arrived. Browsers start this command for it; they find it by a \
            file that --install writes for you. A package installs that file for everybody. Without the name of a browser, every \
            installed browser gets one. Other extensions cannot use it.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Register this program with browsers.")
    var install = false

    @Flag(help: "Undo --install.")
    var remove = false

    @Flag
    var browsers: [Browser] = []

    /// The path of the program in the manifest to print. Used by Packaging/files for manifests that are installed for all users.
    @Option(help: ArgumentHelp(valueName: "program", visibility: .hidden))
    var manifest: String?

    /// The arguments that a browser passes. They identify the extension.
    @Argument(help: ArgumentHelp(visibility: .hidden))
    var callers: [String] = []

    func validate() throws {
        if install && remove { throw ValidationError("Give --install or --remove, not both.") }
        if !browsers.isEmpty, !install, !remove, manifest == nil {
            throw ValidationError("--\(browsers[0].rawValue) needs --install or --remove.")
        }
        if install || remove, let word = callers.first { throw ValidationError("Unexpected argument '\(word)'") }
    }

    func run() async throws {
        if let manifest {
            let output = common.output
            try output.object(BrowserManifest(path: manifest, isFirefox: browsers.contains(where: \.isFirefox)))
            return try output.flush()
        }
        if install { return try BrowserInstallation(common: common, browsers: browsers).install() }
        if remove { return try BrowserInstallation(common: common, browsers: browsers).remove() }
        guard BrowserExtension.isCaller(callers) else {
            throw HexlistError(
                callers.isEmpty ? .badRequest : .forbidden,
                callers.isEmpty
                    ? "Only a browser runs this command, for its extension." : "Only the Hexlist extension may use this program.",
                hint: "To register it with browsers: `hexlist browser --install`.")
        }
        try await common.withClient { try await BrowserHost($0).run() }
    }
}

extension Browser: EnumerableFlag {
    static func name(for value: Browser) -> NameSpecification { .customLong(value.rawValue) }

    static func help(for value: Browser) -> ArgumentHelp? {
        switch value {
        case .chromium: "For Chromium."
        case .chrome: "For Google Chrome."
        case .brave: "For Brave."
        case .edge: "For Microsoft Edge."
        case .vivaldi: "For Vivaldi."
        case .firefox: "For Firefox."
        case .librewolf: "For LibreWolf."
        }
    }
}
