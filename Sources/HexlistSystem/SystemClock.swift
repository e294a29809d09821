internal import CLinux

/// The wall clock of the machine, as the kernel keeps it.
public enum SystemClock {
    /// Whether the kernel says that the clock is synchronised; `nil` if it does not tell.
    public static var isSynchronised: Bool? {
        let state = hexlist_clock_is_synchronised()
        return state < 0 ? nil : state == 1
    }
}
