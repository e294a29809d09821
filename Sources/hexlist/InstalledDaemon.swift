import Glibc
import HexlistAPI
import HexlistSystem

/// The hexlistd that was installed together with this program.
enum InstalledDaemon {
    /// Its path; `nil` if it is neither beside this program nor where the system has its programs.
    static func path() -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let own = String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let beside = HexlistPaths.join(HexlistPaths.folder(of: own), "hexlistd")
        return access(beside, X_OK) == 0 ? beside : Program.path(ofSystem: "hexlistd")
    }
}
