import ArgumentParser
import Glibc
import HexlistClient
import HexlistJSON
import HexlistModel

/// `hexlist browser`: what the extension in `Browser/` talks to.
struct BrowserCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "browser", abstract: "Connect the browser's extension with the daemon.",
        discussion: """
            hexlist browser --install --chromium --firefox

            The extension sends tabs, links and bookmarks, and shows what came. Browsers run this command for it, which they find by a \
            file that --install writes for you; a package has it for everybody. Without the name of a browser, each that is there gets \
            one. No other extension may use it.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Tell browsers of this program.")
    var install = false

    @Flag(help: "Take back what --install wrote.")
    var remove = false

    @Flag
    var browsers: [Browser] = []

    /// The program of a manifest that Packaging/files puts into the folders of the system.
    @Option(help: ArgumentHelp(valueName: "program", visibility: .hidden))
    var manifest: String?

    /// The arguments by which a browser says which extension asks for the host.
    @Argument(help: ArgumentHelp(visibility: .hidden))
    var callers: [String] = []

    func validate() throws {
        if install && remove { throw ValidationError("--install and --remove do not go together.") }
        if !browsers.isEmpty, !install, !remove, manifest == nil {
            throw ValidationError("--\(browsers[0].rawValue) goes with --install or --remove.")
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
                    ? "A browser runs this command, for the extension." : "Only the extension of Hexlist may use this program.",
                hint: "`hexlist browser --install` tells browsers of it.")
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
