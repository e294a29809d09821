import Glibc
import HexlistAPI
import HexlistModel
import HexlistSystem

/// Shows desktop notifications (org.freedesktop.Notifications) by running notify-send.
enum NotifySend {
    /// The button that the user pressed.
    enum Action: String { case open, read }

    /// Maximum time in milliseconds to wait for a button. Pressing a button later has no effect.
    private static let buttonTimeout: Int64 = 60_000
    /// Timeout in milliseconds for showing a notification without buttons.
    private static let showTimeout: Int64 = 10_000
    private static let outputBytes = 4_096

    static var path: String? { DesktopPrograms.path(of: "notify-send") }

    /// The path of this program; without /proc only its name.
    static var ownPath: String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let length = readlink("/proc/self/exe", &buffer, Int(PATH_MAX))
        guard length > 0 else { return "hexlist" }
        return String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Shows a notification. With buttons, waits until one is pressed or the notification is closed.
    /// - Parameters:
    ///   - target: the host shown on the button that opens a link; `nil` for no such button.
    ///   - marks: whether to show a button that marks the hexes as read.
    /// - Returns: the pressed button; `nil` for none.
    /// - Throws: `HexlistError` if the notification cannot be shown.
    @discardableResult
    static func show(_ text: NotificationText, opens target: String? = nil, marks: Bool = false) async throws -> Action? {
        guard let path else {
            throw HexlistError(
                .notSupported, "notify-send is not installed.", hint: "sudo apt install libnotify-bin")
        }
        let hasButtons = target != nil || marks
        let outcome = await Program(path, arguments(text, opens: target, marks: marks)).run(
            environment: DesktopPrograms.environment, milliseconds: hasButtons ? buttonTimeout : showTimeout, outputBytes: outputBytes)
        switch outcome.end {
        case .exited(0):
            let lines = String(decoding: outcome.output, as: UTF8.self).split(whereSeparator: \.isNewline)
            return lines.compactMap { Action(rawValue: String($0)) }.last
        case .timedOut where hasButtons: return nil
        default:
            let output = TerminalText.clean(String(decoding: outcome.output, as: UTF8.self), columns: 200)
            throw HexlistError(
                .internal, "notify-send failed (\(outcome.end)): \(output)", hint: "Notifications need a desktop session with D-Bus.")
        }
    }

    static func arguments(_ text: NotificationText, opens target: String?, marks: Bool) -> [String] {
        var arguments = ["--app-name=Hexlist"]
        // notify-send ignores buttons if the notification server does not support them.
        if let target { arguments.append("--action=\(Action.open.rawValue)=\(NotificationText.opens(target))") }
        if marks { arguments.append("--action=\(Action.read.rawValue)=Mark as read") }
        return arguments + ["--", text.summary, text.body]
    }

    /// Starts a transient systemd unit that shows the notification for a range of events. The unit may wait longer for a button than a hook
    /// may run.
    /// - Returns: `false` if there is no systemd user manager, so that nothing was started.
    static func showInUnit(_ first: Int64, _ last: Int64, _ paths: HexlistPaths) async -> Bool {
        guard let systemdRun = DesktopPrograms.path(of: "systemd-run"), paths.runtimeFolder != nil else { return false }
        var arguments = ["--user", "--quiet", "--collect", "--property=RuntimeMaxSec=90"]
        for variable in DesktopPrograms.environment where !variable.hasPrefix("HEXLIST_") { arguments.append("--setenv=\(variable)") }
        arguments += [ownPath, "notify", "--socket", paths.socket, "--show", "\(first)-\(last)"]
        let outcome = await Program(systemdRun, arguments).run(
            environment: DesktopPrograms.environment, milliseconds: showTimeout, outputBytes: outputBytes)
        return outcome.end == .exited(0)
    }
}
