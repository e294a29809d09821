import Glibc
import HexlistAPI

/// The user who ran this program with `sudo`. A daemon accepts requests from its own user only, not even from root.
struct SudoInvoker {
    let name: String
    private let user: uid_t
    private let group: gid_t
    private let home: String

    /// Returns the user who ran `sudo`; `nil` if this process does not run as root, or if root was not obtained with `sudo`.
    static func ofSudo() -> SudoInvoker? {
        guard geteuid() == 0, let user = Environment.value("SUDO_UID").flatMap(uid_t.init), user != 0, let entry = getpwuid(user)?.pointee,
            let name = entry.pw_name, let home = entry.pw_dir
        else { return nil }
        return SudoInvoker(name: String(cString: name), user: user, group: entry.pw_gid, home: String(cString: home))
    }

    /// The environment of the user who ran `sudo`, as far as it is known. `sudo` removes most variables.
    var variables: [String: String] {
        var variables = Environment.variables
        variables["HOME"] = home
        for folder in ["XDG_RUNTIME_DIR", "XDG_DATA_HOME"] where variables[folder].map(isTheirs) == false { variables[folder] = nil }
        if variables["XDG_RUNTIME_DIR"] == nil { variables["XDG_RUNTIME_DIR"] = "/run/user/\(user)" }
        return variables
    }

    private func isTheirs(_ folder: String) -> Bool {
        var status = stat()
        return stat(folder, &status) == 0 && status.st_uid == user
    }

    /// Runs `body` with the effective user and group ids of the user who ran `sudo`, then switches back to root.
    func with<Result>(_ body: () async throws -> Result) async throws -> Result {
        defer {
            _ = seteuid(0)
            _ = setegid(0)
        }
        guard setegid(group) == 0, seteuid(user) == 0 else { throw SilentExit(status: .failed) }
        return try await body()
    }
}
