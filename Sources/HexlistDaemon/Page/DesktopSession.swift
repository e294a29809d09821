import HexlistFormats
import HexlistModel
import HexlistSystem

#if canImport(Glibc)
    import Glibc
#endif

/// The desktop session of the user. Opens received files and links, shows files in the file manager, and shows notifications. Programs are
/// started without a shell.
struct DesktopSession: Sendable {
    let environment: [String: String]

    private static let milliseconds: Int64 = 10_000
    private static let outputBytes = 4_096
    /// The names of the environment variables that programs of the desktop need.
    private static let names = [
        "HOME", "PATH", "LANG", "LC_ALL", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_HOME", "XDG_CURRENT_DESKTOP",
        "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY",
    ]

    /// Opens a file with the desktop's program for its type, if its type may be opened (`OpenableFile`). The program runs in a systemd unit
    /// of the user or, without systemd, in its own session, so that it does not end with the daemon.
    /// - Throws: `forbidden` if the type may not be opened; `notSupported` without a desktop session.
    func open(_ path: String) async throws(HexlistError) {
        guard try OpenableFile.isOpenable(path) else {
            throw HexlistError(
                .forbidden, "Only images, audio, video, PDF and plain text are opened here.",
                hint: "Open it from its folder, with care.")
        }
        guard let opener = program("xdg-open") else {
            throw HexlistError(.notSupported, "xdg-open is not installed.", hint: "Install the package xdg-utils.")
        }
        if let systemd = program("systemd-run"), let runtime = environment["XDG_RUNTIME_DIR"],
            access("\(runtime)/systemd/private", F_OK) == 0
        {
            // systemd expands `${NAME}` in arguments to the value of a variable, and `$$` to `$`.
            return try await run(systemd, ["--user", "--quiet", "--collect", "--", opener, path.replacing("$", with: "$$")])
        }
        guard environment["DISPLAY"] != nil || environment["WAYLAND_DISPLAY"] != nil else {
            throw HexlistError(.notSupported, "Hexlist does not run in a desktop session.", hint: "The file is in the download folder.")
        }
        do throws(SystemError) {
            try Program(opener, [path]).launch(environment: variables)
        } catch {
            throw HexlistError(.notSupported, "xdg-open cannot be started (\(error)).")
        }
    }

    /// Shows a file, selected, in the file manager of the desktop, over D-Bus (`org.freedesktop.FileManager1`).
    /// - Throws: `notFound` if the file no longer exists; `notSupported` if no file manager offers this interface.
    func show(_ path: String) async throws(HexlistError) {
        guard access(path, F_OK) == 0 else { throw HexlistError(.notFound, "This file was moved or deleted.") }
        guard let gdbus = program("gdbus") else {
            throw HexlistError(.notSupported, "gdbus is not installed.", hint: "Install the package libglib2.0-bin.")
        }
        // The URI is percent-encoded, so it has no character that ends a string in an argument of gdbus.
        let uri =
            "file://"
            + path.split(separator: "/", omittingEmptySubsequences: false).map { PercentEncoding.encode(String($0)) }
            .joined(separator: "/")
        let name = "org.freedesktop.FileManager1"
        try await run(
            gdbus,
            [
                "call", "--session", "--timeout", "8", "--dest", name, "--object-path", "/org/freedesktop/FileManager1", "--method",
                "\(name).ShowItems", "['\(uri)']", "''",
            ])
    }

    /// Opens a link in the user's browser, through the desktop portal (`org.freedesktop.portal.OpenURI`).
    /// - Throws: `notSupported` if the desktop has no such portal.
    func open(link url: String) async throws(HexlistError) {
        guard let gdbus = program("gdbus") else {
            throw HexlistError(.notSupported, "gdbus is not installed.", hint: "Install the package libglib2.0-bin.")
        }
        // Quotation marks and backslashes, which could end a string in an argument of gdbus, are percent-encoded. Browsers treat the
        // encoded form in the same way.
        let uri = PercentEncoding.encodeUnprintable(url, and: #"'\"#)
        let name = "org.freedesktop.portal"
        try await run(
            gdbus,
            [
                "call", "--session", "--timeout", "8", "--dest", "\(name).Desktop", "--object-path", "/org/freedesktop/portal/desktop",
                "--method", "\(name).OpenURI.OpenURI", "''", "'\(uri)'", "@a{sv} {}",
            ])
    }

    /// Shows a notification. The texts are shown literally: markup in them has no effect.
    /// - Throws: `notSupported` without notify-send or a notification server.
    func notify(_ summary: String, _ text: String) async throws(HexlistError) {
        guard let path = program("notify-send") else {
            throw HexlistError(.notSupported, "notify-send is not installed.", hint: "Install the package libnotify-bin.")
        }
        try await run(path, ["--app-name=Hexlist", "--", summary, MarkupText.escaped(text)])
    }

    private var variables: [String] { Self.names.compactMap { name in environment[name].map { "\(name)=\($0)" } } }

    private func program(_ name: String) -> String? {
        (environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").map { "\($0)/\(name)" }
            .first { $0.hasPrefix("/") && access($0, X_OK) == 0 }
    }

    private func run(_ path: String, _ arguments: [String]) async throws(HexlistError) {
        let result = await Program(path, arguments).run(
            environment: variables, milliseconds: Self.milliseconds, outputBytes: Self.outputBytes)
        guard result.end != .exited(0) else { return }
        let output = TerminalText.clean(String(decoding: result.output, as: UTF8.self), columns: 200)
        throw HexlistError(.notSupported, "The desktop reported an error: \(output.isEmpty ? "\(result.end)" : output)")
    }
}
