import Foundation
import Glibc
import TestSupport

/// A D-Bus bus and an avahi-daemon of the tests' own. The daemon runs in a network namespace with only its own interface, so it announces
/// to no other machine. Tests reach it through the bus's socket file.
final class PrivateAvahi {
    /// libdbus reads the address once per process, so all tests share it.
    static let folder: String = {
        let folder = NSTemporaryDirectory() + "hexlist-avahi-\(getpid())"
        try? FileManager.default.createDirectory(atPath: folder + "/run", withIntermediateDirectories: true)
        setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=\(folder)/bus", 1)
        return folder
    }()

    /// The reason why a private avahi-daemon cannot run on this machine; `nil` if it can.
    static let obstacle: String? = {
        for tool in ["dbus-daemon", "avahi-daemon", "ip", "unshare"] where path(tool) == nil { return "\(tool) is not installed" }
        guard let trial = try? ChildProcess(path("unshare") ?? "unshare", namespace + ["true"]) else { return "unshare does not run" }
        return trial.waitForEnd() == 0 ? nil : "no namespaces may be made here"
    }()

    private var bus: ChildProcess?
    private var daemon: ChildProcess?

    private static let namespace = (geteuid() == 0 ? [] : ["--user", "--map-root-user"]) + ["--net", "--mount"]

    private static func path(_ tool: String) -> String? {
        ["/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/"].map { $0 + tool }.first { access($0, X_OK) == 0 }
    }

    /// Starts the bus. Returns once it listens.
    func startBus() throws {
        let configuration = Self.folder + "/bus.conf"
        let text = """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig><type>system</type><listen>unix:path=\(Self.folder)/bus</listen><policy context="default">
            <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/><allow user="*"/></policy></busconfig>
            """
        try text.write(toFile: configuration, atomically: true, encoding: .utf8)
        unlink(Self.folder + "/bus")
        let output = Pipe()
        bus = try run("dbus-daemon", ["--config-file=\(configuration)", "--nofork", "--nopidfile", "--print-address=1"], output: output)
        try output.fileHandleForWriting.close()
        _ = output.fileHandleForReading.availableData  // the address, once it listens
    }

    func startDaemon() throws {
        let configuration = Self.folder + "/avahi.conf"
        let text = "[server]\nhost-name=hexlist-test\nuse-ipv4=yes\nuse-ipv6=yes\nenable-dbus=yes\n[wide-area]\nenable-wide-area=no\n"
        try text.write(toFile: configuration, atomically: true, encoding: .utf8)
        let script = """
            ip link set lo up && ip link add test0 type veth peer name test1 && ip addr add 10.99.0.1/24 dev test0 &&
            ip link set test0 up && ip link set test1 up && mkdir -p /run/avahi-daemon 2>/dev/null || mount -t tmpfs none /run;
            mkdir -p /run/avahi-daemon && mount --bind \(Self.folder)/run /run/avahi-daemon && rm -f /run/avahi-daemon/* &&
            exec avahi-daemon -f \(configuration) --no-drop-root --no-chroot --no-rlimits
            """
        daemon = try run("unshare", Self.namespace + ["sh", "-c", script], output: nil)
    }

    /// Kills avahi-daemon with SIGKILL, so that it sends no goodbye.
    func killDaemon() { end(&daemon) }
    func killBus() { end(&bus) }

    deinit {
        end(&daemon)
        end(&bus)
        try? FileManager.default.removeItem(atPath: Self.folder)
    }

    private func end(_ process: inout ChildProcess?) {
        guard let ended = process else { return }
        process = nil
        ended.signal(SIGKILL)
        ended.waitForEnd()
    }

    private func run(_ tool: String, _ arguments: [String], output: Pipe?) throws -> ChildProcess {
        try ChildProcess(Self.path(tool) ?? tool, arguments, output: output?.fileHandleForWriting.fileDescriptor)
    }
}
