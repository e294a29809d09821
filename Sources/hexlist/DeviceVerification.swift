import HexlistAPI
import HexlistModel

/// The comparison of fingerprints with a LocalSend device, as the page Verify of LocalSend 1.18 shows them.
enum DeviceVerification {
    /// The lines that tell the user what the device must show.
    static func lines(_ device: Fingerprint, own: StatusJSON) -> [String] {
        guard let ownFingerprint = own.localSend?.fingerprint else {
            return ["LocalSend is off on this machine, so there is nothing to compare with the device."]
        }
        return [
            "On the device, in LocalSend 1.18, open Send, then the details of \"\(TerminalText.clean(own.name, columns: 40))\", "
                + "then Verify, then Text. It must show:",
            "  \(text(device, ownFingerprint))      (the first and last 8 digits of each half)",
            "LocalSend 1.16 and 1.17 cannot show it: you would trust the device as first seen.",
        ]
    }

    /// Both fingerprints in upper case, the smaller one first, each by its first and last 8 digits.
    static func text(_ one: Fingerprint, _ other: Fingerprint) -> String {
        [one, other].map { $0.description.uppercased() }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            .map { "\($0.prefix(8))…\($0.suffix(8))" }.joined(separator: " ")
    }
}
