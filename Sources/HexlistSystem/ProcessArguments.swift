internal import CLinux

/// The command line of this process. `CommandLine.arguments` is not used, because it reads /proc/self/cmdline and is empty without /proc.
public enum ProcessArguments {
    /// All arguments, beginning with the program's name. Empty if the process was started without any.
    public static let all: [String] = (0..<hexlist_argument_count()).compactMap { hexlist_argument($0).map { String(cString: $0) } }
}
