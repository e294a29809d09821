import Glibc
import HexlistModel
import HexlistSystem

/// A QR code on a terminal, drawn by the program qrencode.
enum QRCode {
    /// Bytes of a drawn code: the largest there is, with its colours, has less.
    private static let most = 256 << 10

    /// Notes why there is none where qrencode is not installed or the terminal is too small.
    static func show(_ text: String, _ output: Output) async throws {
        guard let path = Program.path(ofSystem: "qrencode") else {
            return StandardError.note("qrencode is not installed, so no QR code is drawn: `sudo apt install qrencode`")
        }
        // Black on white where the terminal has colours; else in its own, of which most scanners read both ways.
        let type = output.terminal.hasColor ? "ANSIUTF8" : "UTF8"
        let outcome = await Program(path, ["--type=\(type)", "--level=L", "--margin=2", "--output=-", "--", text]).run(
            environment: ["PATH=/usr/bin:/bin"], milliseconds: 5_000, outputBytes: most)
        guard outcome.end == .exited(0) else { return StandardError.note("qrencode failed, so no QR code is drawn.") }
        let lines = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n")
        let columns = lines.map { TextWidth.of(withoutColors($0)) }.max() ?? 0
        if let width = output.terminal.width, columns > width {
            return StandardError.note("The QR code needs \(columns) columns, and this terminal has \(width).")
        }
        try output.bytes(outcome.output)
    }

    private static func withoutColors(_ line: Substring) -> String {
        var isInside = false
        return String(
            line.filter { character in
                if character == "\u{1B}" { isInside = true }
                defer { if character == "m" { isInside = false } }
                return !isInside
            })
    }
}

/// The addresses under which others may reach this machine.
enum OwnAddresses {
    /// More make the QR code larger than most terminals.
    private static let most = 2

    /// `host:port`, IPv4 first; without those of this machine alone, of one link, and of containers.
    static func list(port: Int, _ interfaces: [MachineInterface] = MachineInterface.all()) -> [String] {
        let addresses: [IPAddress] = interfaces.filter { $0.isUp && $0.isRunning && !$0.isLoopback && !$0.isVirtual }.flatMap(\.addresses)
            .map(\.address)
        let useful = addresses.filter { !$0.isLinkLocal }
        let ordered: [IPAddress] = useful.filter { !$0.isIPv6 } + useful.filter { $0.isIPv6 }
        return ordered.prefix(most).map { HostPort.text($0.description, port) }
    }
}
