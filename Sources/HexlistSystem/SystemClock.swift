internal import CLinux

/// The wall clock of the machine.
public enum SystemClock {
    /// Whether the clock is synchronised, for example by NTP; `nil` if unknown.
    public static var isSynchronised: Bool? {
        let state = hexlist_clock_is_synchronised()
        return state < 0 ? nil : state == 1
    }
}
