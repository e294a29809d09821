internal import CLinux

/// The wall clock of the machine, as the kernel keeps it.
public enum SystemClock {
    /// Whether something keeps the clock right, by the kernel's word; `nil` where it says nothing.
    public static var isSynchronised: Bool? {
        let state = hexlist_clock_is_synchronised()
        return state < 0 ? nil : state == 1
    }
}
