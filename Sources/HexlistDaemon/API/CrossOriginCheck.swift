import HTTPTypes
import HexlistModel
import Hummingbird

/// Refuses requests of web pages in a browser, which could reach the Unix socket through a program that forwards a port to it. Recognises
/// them by headers that only browsers send, and by the Host header.
enum CrossOriginCheck {
    private static let headers = ["origin", "referer", "sec-fetch-site", "sec-fetch-mode"].compactMap { HTTPField.Name($0) }
    /// The loopback addresses that the Host header may contain. It may also contain a name without a dot (`localhost`, `hexlist`), because
    /// the names of web pages have a dot.
    private static let addresses = ["127.0.0.1", "[::1]"]

    /// Checks the headers of a request.
    /// - Throws: `HexlistError` `forbidden` if a web page may have sent the request.
    static func refuse(_ request: Request) throws(HexlistError) {
        if let header = headers.first(where: { request.headers.contains($0) }) {
            throw HexlistError(
                .forbidden, "The local API does not answer web pages, and this request has `\(header.rawName)`.",
                hint: "Send it from a program of this user, without that header.")
        }
        guard let authority = request.head.authority, !isOwn(authority) else { return }
        throw HexlistError(
            .forbidden, "The local API is not at `\(TerminalText.clean(authority, columns: 60))`.",
            hint: "Name `localhost` as host: `curl --unix-socket … http://localhost/v1/status`.")
    }

    private static func isOwn(_ authority: String) -> Bool {
        let port = authority.lastIndex(of: ":").map { authority[$0...].dropFirst() } ?? ""
        let hasPort = !port.isEmpty && port.utf8.allSatisfy(ASCII.isDigit)
        let host = hasPort ? authority.dropLast(port.count + 1) : authority[...]
        return addresses.contains(String(host)) || host.utf8.allSatisfy { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "@") && $0 < 0x80 }
    }
}
