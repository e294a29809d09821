import Foundation
import TestSupport

/// hexlistd on this machine, on loopback only and without D-Bus, in its own folder. It needs no namespaces.
struct LocalDaemon: Sendable {
    let folder: TemporaryFolder
    private var extra: [String: String]

    init(environment: [String: String] = [:]) throws {
        folder = try TemporaryFolder()
        extra = environment
        try folder.write("name: local\nlisten: [127.0.0.1]\n", to: "config.yaml")
    }

    static func with(environment: [String: String] = [:], test: (LocalDaemon) async throws -> Void) async throws {
        let daemon = try LocalDaemon(environment: environment)
        defer { daemon.folder.remove() }
        try await test(daemon)
    }

    /// Sets an environment variable of programs started later.
    mutating func set(_ name: String, _ value: String) { extra[name] = value }

    var state: String { "\(folder.path)/state" }
    var socket: String { "\(folder.path)/control.sock" }
    var store: String { "\(state)/hexlist.sqlite" }

    var environment: [String: String] {
        var environment = [
            "HOME": folder.path, "XDG_CONFIG_HOME": folder.path, "XDG_RUNTIME_DIR": folder.path, "HEXLIST_STATE_DIR": state,
            "HEXLIST_CONFIG": "\(folder.path)/config.yaml", "HEXLIST_SOCKET": socket,
            // Tests announce nothing on this machine's network.
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(folder.path)/no-bus",
            // Tests request no pages of links.
            "HEXLIST_TITLES": "off",
        ]
        environment.merge(extra) { $1 }
        return environment
    }

    /// Runs hexlistd until it exits, for states it refuses to start with.
    func refused(_ arguments: String..., seconds: Int = Patience.command) async throws -> Command.Output {
        try await Command.run([Checkout.hexlistd, "--port", "0"] + arguments, environment: environment, seconds: seconds)
    }

    func hexlist(_ arguments: String..., seconds: Int = Patience.command) async throws -> Command.Output {
        try await Command.run([Checkout.hexlist] + arguments, environment: environment, seconds: seconds)
    }

    /// Runs the test while hexlistd runs, then ends it with SIGTERM.
    /// - Returns: its exit status.
    @discardableResult
    func running(_ arguments: String..., test: () async throws -> Void) async throws -> Int32 {
        let notify = try NotifySocket(path: "\(folder.path)/notify")
        let daemon = try RunningCommand(
            [Checkout.hexlistd] + (arguments.contains("--port") ? [] : ["--port", "0"]) + arguments,
            environment: environment.merging(["NOTIFY_SOCKET": notify.path]) { $1 }, seconds: Patience.server)
        do {
            try await notify.ready()
            try await test()
        } catch {
            await daemon.stop()
            throw error
        }
        return await daemon.stop()
    }
}

enum LoopbackPort {
    /// An unused TCP port outside of the range from which the system chooses ports.
    static func free() throws -> Int {
        for _ in 0..<100 {
            guard let port = RefusingPort(UInt16.random(in: 20_000..<32_768)) else { continue }
            defer { port.close() }
            return Int(port.port)
        }
        throw Command.Failure("no port is free")
    }
}
