internal import CLinux

/// The command line of this process. Used instead of `CommandLine.arguments`, which reads /proc/self/cmdline and is empty without /proc.
public enum ProcessArguments {
    /// All arguments, starting with the program's name. Empty if the process was started without any.
    public static let all: [String] = (0..<hexlist_argument_count()).compactMap { hexlist_argument($0).map { String(cString: $0) } }
}
