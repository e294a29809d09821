import Glibc
import HexlistAPI
import HexlistModel
import HexlistSystem

/// The desktop's notifications (org.freedesktop.Notifications), through notify-send.
enum NotifySend {
    /// A button that was pressed.
    enum Action: String { case open, read }

    /// Milliseconds to wait for a button; then the notification stays without buttons.
    private static let buttonTimeout: Int64 = 60_000
    /// Milliseconds for showing a notification.
    private static let showTimeout: Int64 = 10_000
    private static let outputBytes = 4_096

    static var path: String? { DesktopPrograms.path(of: "notify-send") }

    /// The path of this program; only its name without /proc.
    static var ownPath: String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let length = readlink("/proc/self/exe", &buffer, Int(PATH_MAX))
        guard length > 0 else { return "hexlist" }
        return String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Shows a notification. With buttons, returns once one is pressed or the notification is closed.
    /// - Parameter target: the host that the button opens, for its label; `nil` for no such button.
    /// - Throws: `HexlistError` if it cannot be shown.
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
        // notify-send drops buttons that the notification server does not support.
        if let target { arguments.append("--action=\(Action.open.rawValue)=\(NotificationText.opens(target))") }
        if marks { arguments.append("--action=\(Action.read.rawValue)=Mark as read") }
        return arguments + ["--", text.summary, text.body]
    }

    /// Shows the notification of events from a transient systemd unit, which may wait longer for a button than a hook may run.
    /// - Returns: `false` without a systemd user manager.
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
