import HexlistAPI
import HexlistModel

/// The text that `peer trust` shows before a device with LocalSend is trusted.
enum DeviceTrustText {
    /// Returns the lines that explain which fingerprints the user has to compare.
    /// - Parameters:
    ///   - own: the fingerprint of this machine's certificate.
    ///   - name: the name of this machine.
    ///   - isFull: whether all digits are shown.
    static func lines(of device: PeerView, _ fingerprint: Fingerprint, own: Fingerprint, name: String, isFull: Bool) -> [String] {
        let head = "\(device.label.shown(.full, columns: 80)) (LocalSend)"
        guard hasVerifyPage(device) else {
            return [
                head, "LocalSend before 1.18 cannot show a fingerprint, so there is nothing to compare. If you trust it, you trust",
                "the device that has the certificate \(shortened(digits(fingerprint))) now.",
            ]
        }
        let name = TerminalText.clean(name, columns: 40)
        let halves = [digits(own), digits(fingerprint)].sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        let shown = isFull ? halves : [halves.map(shortened).joined(separator: " ")]
        let intro = "In LocalSend on the device, open the Send tab, the details of \"\(name)\", Verify, then Text. It must show:"
        return [head, intro] + shown.map { "  \($0)" } + (isFull ? [] : ["  (the first and last 8 digits of each half; --full shows all)"])
    }

    /// Whether the app has the page *Verify*: LocalSend 1.18, which has protocol 2.2, or newer.
    static func hasVerifyPage(_ device: PeerView) -> Bool {
        let parts = (device.version ?? "").split(separator: ".").map { Int($0) ?? 0 }
        guard parts.count >= 2 else { return false }
        return parts[0] > 2 || parts[0] == 2 && parts[1] >= 2
    }

    /// Returns a fingerprint as LocalSend shows it: hexadecimal digits in upper case, without spaces.
    private static func digits(_ fingerprint: Fingerprint) -> String { Hexadecimal.encode(fingerprint.bytes).uppercased() }

    private static func shortened(_ digits: String) -> String { "\(digits.prefix(8))…\(digits.suffix(8))" }
}
