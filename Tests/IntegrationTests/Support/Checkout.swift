import Foundation

/// The paths of the project and its programs.
enum Checkout {
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

    /// The folder with hexlistd and hexlist: HEXLIST_BIN, or the folder of this test program.
    static let programs: String = {
        if let folder = ProcessInfo.processInfo.environment["HEXLIST_BIN"], !folder.isEmpty { return folder }
        return URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().path
    }()

    static let hexlistd = "\(programs)/hexlistd"
    static let hexlist = "\(programs)/hexlist"

    static let hasPrograms = [hexlistd, hexlist].allSatisfy { FileManager.default.isExecutableFile(atPath: $0) }
}

/// Programs of the system, such as `ip`.
enum Program {
    /// - Returns: `nil` if it is not installed.
    static func path(of name: String) -> String? {
        ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
