import Glibc
import HexlistAPI
import HexlistModel
import HexlistSystem

/// Shows desktop notifications (org.freedesktop.Notifications) by running notify-send.
enum NotifySend {
    /// The button that the user pressed.
    enum Action: String { case open, save, accept, read }

    /// A button of a notification.
    struct Button: Equatable {
        var action: Action
        var label: String

        static let markAsRead = Button(action: .read, label: "Mark as read")
        static let accept = Button(action: .accept, label: "Accept")
        /// Opens a link; the label has its host.
        static func open(_ target: String) -> Button { Button(action: .open, label: NotificationText.opens(target)) }
        static func save(_ files: Int) -> Button {
            Button(action: .save, label: files == 1 ? "Save file" : "Save \(HumanText.count(files, "file", "files"))")
        }
    }

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
    /// - Returns: the action of the pressed button; `nil` for none.
    /// - Throws: `HexlistError` if the notification cannot be shown.
    @discardableResult
    static func show(_ text: NotificationText, _ buttons: [Button] = []) async throws -> Action? {
        guard let path else {
            throw HexlistError(
                .notSupported, "notify-send is not installed.", hint: "sudo apt install libnotify-bin")
        }
        let outcome = await Program(path, arguments(text, buttons)).run(
            environment: DesktopPrograms.environment, milliseconds: buttons.isEmpty ? showTimeout : buttonTimeout, outputBytes: outputBytes)
        switch outcome.end {
        case .exited(0):
            let lines = String(decoding: outcome.output, as: UTF8.self).split(whereSeparator: \.isNewline)
            return lines.compactMap { Action(rawValue: String($0)) }.last
        case .timedOut where !buttons.isEmpty: return nil
        default:
            let output = TerminalText.clean(String(decoding: outcome.output, as: UTF8.self), columns: 200)
            throw HexlistError(
                .internal, "notify-send failed (\(outcome.end)): \(output)", hint: "Notifications need a desktop session with D-Bus.")
        }
    }

    static func arguments(_ text: NotificationText, _ buttons: [Button]) -> [String] {
        // notify-send ignores buttons if the notification server does not support them.
        ["--app-name=Hexlist"] + buttons.map { "--action=\($0.action.rawValue)=\($0.label)" } + ["--", text.summary, text.body]
    }

    /// Starts a transient systemd unit that shows the notification for a range of events. The unit may wait longer for a button than a hook
    /// may run.
    /// - Returns: `false` if there is no systemd user manager, so that nothing was started.
    static func showInUnit(_ range: NotifiedRange, _ paths: HexlistPaths) async -> Bool {
        guard let systemdRun = DesktopPrograms.path(of: "systemd-run"), paths.runtimeFolder != nil else { return false }
        var arguments = ["--user", "--quiet", "--collect", "--property=RuntimeMaxSec=90"]
        for variable in DesktopPrograms.environment where !variable.hasPrefix("HEXLIST_") { arguments.append("--setenv=\(variable)") }
        arguments += [ownPath, "notify", "--socket", paths.socket, "--show", range.text]
        let outcome = await Program(systemdRun, arguments).run(
            environment: DesktopPrograms.environment, milliseconds: showTimeout, outputBytes: outputBytes)
        return outcome.end == .exited(0)
    }
}
