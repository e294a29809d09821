/// Formats a host and a port as in a URL.
public enum HostPort {
    /// Returns host and port, with an IPv6 address in brackets: `192.0.2.1:24391`, `ada.example:24391`, `[2001:db8::1]:24391`.
    public static func text(_ host: String, _ port: some BinaryInteger) -> String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
