internal import Glibc
internal import HexlistAPI
internal import HexlistSystem

/// The checks that need no daemon, except that of the firewall.
enum LocalChecks {
    // MARK: Clock

    static func clock() -> DoctorStep {
        clock(seconds: Timestamp.now.milliseconds / 1_000, isSynchronised: SystemClock.isSynchronised)
    }

    /// Makes the step `clock`.
    /// - Parameters:
    ///   - seconds: the current time in seconds since 1970.
    ///   - isSynchronised: whether the kernel reports that the clock is synchronised; `nil` if it reports nothing.
    static func clock(seconds: Int64, isSynchronised: Bool?) -> DoctorStep {
        let moment = Timestamp(milliseconds: seconds * 1_000).description
        let advice = ["sudo timedatectl set-ntp true", "Or set it by hand: sudo date --set '…'"]
        // 2026-01-01 and 2100-01-01
        guard (1_767_225_600..<4_102_444_800).contains(seconds) else {
            return DoctorStep(
                "clock", .failed, "The clock shows \(moment), which is impossible: times in lists are wrong, and waiting hexes may expire.",
                advice: advice)
        }
        switch isSynchronised {
        case true?: return DoctorStep("clock", .ok, "\(moment), set by time synchronisation.")
        case false?:
            return DoctorStep(
                "clock", .warning, "\(moment), without time synchronisation. Sending works; times in lists may be wrong.",
                advice: [advice[0]])
        case nil: return DoctorStep("clock", .ok, "\(moment); time synchronisation cannot be checked.")
        }
    }

    // MARK: D-Bus and avahi-daemon

    /// Makes the step for the D-Bus system bus.
    /// - Parameter address: the value of `DBUS_SYSTEM_BUS_ADDRESS`, if it is set.
    static func bus(_ address: String?) -> DoctorStep {
        let path = address.flatMap(busPath) ?? "/run/dbus/system_bus_socket"
        let advice = ["sudo systemctl start dbus"]
        let user = String(geteuid()).utf8.map { String($0, radix: 16) }.joined()
        switch LocalSocket.ask(path, [0] + Array("AUTH EXTERNAL \(user)\r\n".utf8)) {
        case .success(let answer) where answer.starts(with: Array("OK ".utf8)):
            return DoctorStep("dbus", .ok, "The system's D-Bus answers on \(path).")
        case .success(let answer):
            let words = String(decoding: answer.prefix(60), as: UTF8.self)
            return DoctorStep("dbus", .failed, "The system's D-Bus on \(path) refuses this user (\(words)).", advice: advice)
        case .failure(let why):
            return DoctorStep("dbus", .failed, "The system's D-Bus cannot be reached: \(path): \(why.text).", advice: advice)
        }
    }

    /// Returns the path in `unix:path=/run/dbus/system_bus_socket,guid=…`; of several addresses, the first one is used.
    static func busPath(_ address: String) -> String? {
        guard let first = address.split(separator: ";").first, first.hasPrefix("unix:") else { return nil }
        return first.dropFirst(5).split(separator: ",").first { $0.hasPrefix("path=") }.map { String($0.dropFirst(5)) }
    }

    static func avahi() -> DoctorStep {
        let path = "/run/avahi-daemon/socket"
        switch LocalSocket.ask(path, Array("HELP\n".utf8)) {
        case .success(let answer) where !answer.isEmpty: return DoctorStep("avahi", .ok, "avahi-daemon answers.")
        case .success, .failure:
            let isInstalled = Program.path(ofSystem: "avahi-daemon") != nil
            return DoctorStep(
                "avahi", .failed, isInstalled ? "avahi-daemon does not run." : "avahi-daemon is not installed.",
                advice: isInstalled
                    ? ["sudo systemctl enable --now avahi-daemon"]
                    : ["sudo apt install avahi-daemon (Debian, Ubuntu), sudo dnf install avahi (Fedora)"])
        }
    }
}
