import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

struct WebCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "web", abstract: "Open Hexlist in the browser: inbox, peers and sending.",
        discussion: """
            Only you can open the page, and only on this machine. It ends 15 minutes after it was closed. Each run opens it once; an \
            address that was used or is older than 30 seconds no longer works.

            From another machine: run `hexlist web --print` there over ssh. It says which port to forward; forward it, run the command \
            again, and open the address it prints.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(name: .customLong("print"), help: "Print the address instead of opening it, and how to reach it over ssh.")
    var isPrinted = false

    @Option(name: .customLong("with"), help: ArgumentHelp("The browser; by default $BROWSER or xdg-open.", valueName: "program"))
    var browser: String?

    @Flag(help: "Start hexlistd if it does not run, now and at every login. The page has *Turn off*.")
    var start = false

    @Option(name: .customLong("at"), help: ArgumentHelp("The first thing the page shows.", valueName: "place"))
    var section: PageSection?

    @Flag(name: .customLong("send"), help: "Open the page with files and folders to send.")
    var sendsFiles = false

    @Argument(help: ArgumentHelp("With --send: files and folders.", valueName: "file"), completion: .file())
    var files: [String] = []

    func validate() throws {
        if sendsFiles == files.isEmpty {
            throw ValidationError(sendsFiles ? "Which files? `hexlist web --send FILE …`" : "Files need --send.")
        }
        if sendsFiles, section != nil { throw ValidationError("--send and --at do not go together.") }
        if start, common.socket != nil || common.stateDir != nil {
            throw ValidationError("--start starts the hexlistd of this user; --socket and --state-dir name another one.")
        }
        if browser != nil, isPrinted || common.json { throw ValidationError("--with opens the page: leave out --print and --json.") }
    }

    func run() async throws {
        var (invitation, isStarted) = try await opened()
        if sendsFiles {
            let paths = files.map { HexlistPaths.absolute($0) }
            if let missing = paths.first(where: { access($0, F_OK) != 0 }) {
                throw HexlistError(.notFound, "There is no file \(TerminalText.clean(missing, columns: 200)).")
            }
            invitation.url += "/draft/\(try await common.withClient { try await $0.addDraft(paths) }.id)"
        } else if let section {
            invitation.url += "/\(section.rawValue)"
        } else if isStarted {
            invitation.url += "/started"
        }
        let output = common.output
        if common.json {
            try output.object(invitation)
        } else if isPrinted {
            try output.line(invitation.url)
            StandardError.note(PageText.forwarding(port: invitation.port))
        } else {
            let file = try PageLaunchFile.write(invitation.url, folder: HexlistPaths.folder(of: common.paths.socket))
            do throws(HexlistError) {
                try LinkProgram.run(
                    LinkProgram.program(browser, browser: Environment.value("BROWSER")), link: "file://" + PageLaunchFile.escaped(file))
            } catch {
                let hint = [error.hint, "Or open the address from `hexlist web --print`."].compactMap(\.self).joined(separator: " ")
                throw HexlistError(error.code, error.message, hint: hint)
            }
        }
        try output.flush()
    }
}

extension WebCommand {
    /// Returns the address of the web page, and whether hexlistd was started to get it.
    private func opened() async throws -> (PageAddress, isStarted: Bool) {
        do {
            return (try await common.withClient { try await $0.openPage() }, false)
        } catch let error as HexlistError where error.code == .daemonUnreachable && start {
            let paths = common.paths
            let folder = HexlistPaths.folder(of: paths.socket)
            mkdir(folder, 0o700)  // hexlistd creates this folder itself, but it does not run yet
            try await DaemonStarter.start(
                notifySocket: HexlistPaths.join(folder, "start.\(getpid())"), configurationHome: paths.configurationHome)
            return (try await common.withClient { try await $0.openPage() }, true)
        }
    }
}

/// The part of the web page that is shown first.
enum PageSection: String, ExpressibleByArgument, CaseIterable {
    case new, pair, inbox, requests, mine, outbox, peers
}

/// Texts about the web page.
enum PageText {
    static func forwarding(port: Int) -> String {
        // Without ExitOnForwardFailure, ssh continues even if another user of this machine already listens on the port. That user would
        // receive the secret.
        "This address works once, within 30 seconds. From another machine, first run "
            + "`ssh -o ExitOnForwardFailure=yes -L \(port):127.0.0.1:\(port) HOST`, then this again."
    }
}

/// Writes a local HTML file that redirects the browser to the web page. Passing the URL as an argument would reveal its secret to all users
/// of the machine.
enum PageLaunchFile {
    /// Writes the file with mode 0600 and replaces an earlier one.
    /// - Returns: the path of the file.
    /// - Throws: `HexlistError` if the file cannot be written.
    static func write(_ url: String, folder: String) throws(HexlistError) -> String {
        let path = HexlistPaths.absolute(HexlistPaths.join(folder, "web.html"))
        let temporary = path + ".\(getpid())"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw fault(path) }
        let bytes = Array(text(url).utf8)
        let written = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        guard close(descriptor) == 0, written == bytes.count, rename(temporary, path) == 0 else {
            unlink(temporary)
            throw fault(path)
        }
        return path
    }

    /// Returns the content of the file.
    /// - Parameter url: contains only letters, digits and `:/.#`, so it needs no escaping.
    static func text(_ url: String) -> String {
        """
        <!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Hexlist</title>
        <script>location.replace("\(url)")</script>
        <noscript>Hexlist's page needs JavaScript.</noscript>

        """
    }

    /// Percent-encodes a path for a `file:` URL.
    static func escaped(_ path: String) -> String {
        path.utf8.map { byte in
            let isPlain = ASCII.isDigit(byte) || ASCII.isLowercase(ASCII.lowercased(byte)) || "/-._~".utf8.contains(byte)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }

    private static func fault(_ path: String) -> HexlistError {
        HexlistError(
            .internal, "\(path) cannot be written: \(String(cString: strerror(errno))).", hint: "`hexlist web --print` needs no file.")
    }
}
