import HexlistModel

/// The parts of the head of a plain HTTP request that `GuestGate` checks. All texts are untrusted.
struct GuestRequestHead {
    var method: String
    var path: String
    /// The `Host` field; `nil` if the request has none.
    var host: String?
    var origins: [String] = []
    /// The values of `Sec-Fetch-Site`. Browsers omit this field in requests to `http://` URLs.
    var sites: [String] = []
}

/// The reply to a refused plain HTTP request of a guest or a shortcut.
struct GuestRefusal: Error, Equatable {
    var status: Int
    var message: String

    /// The reply after the end of an invitation, and to each request of a guest while there is no invitation.
    static let over = GuestRefusal(status: 410, message: "This invitation has ended. Ask for a new one.")
    static let notFound = GuestRefusal(status: 404, message: "Nothing exists at this address.")
}

/// Decides from the head of a plain HTTP request on the peer port whether to refuse it, because another web site may have made a browser
/// send it. Performs no IO.
struct GuestGate {
    /// The peer port, which is part of `Host`.
    var port: Int
    /// The addresses of this machine, without scopes.
    var addresses: [IPAddress]
    /// The name of this machine in mDNS, without `.local`; empty if it has none.
    var hostName: String

    /// Checks a request of the guest page.
    /// - Throws: the refusal of the first rule that the request violates.
    func check(_ head: GuestRequestHead) throws(GuestRefusal) {
        let host = try checkHost(head)
        guard head.origins.allSatisfy({ PeerTextComparison.areEqual($0, "http://\(host)") }) else { throw Self.otherSite }
        try checkSite(head)
        switch head.method {
        case "GET", "HEAD": break
        case "POST", "DELETE":
            guard !head.origins.isEmpty else { throw Self.otherSite }
        default: throw GuestRefusal(status: 405, message: "This method is not supported.")
        }
    }

    /// Checks a request of a shortcut. Browsers add `Origin` to each `POST`, so a request with this header is from a web site and is
    /// refused.
    /// - Throws: the refusal of the first rule that the request violates.
    func checkDrop(_ head: GuestRequestHead) throws(GuestRefusal) {
        _ = try checkHost(head)
        guard head.origins.isEmpty else { throw Self.otherSite }
        try checkSite(head)
        guard head.method == "POST" else {
            throw GuestRefusal(
                status: 405, message: "This address is for a shortcut, which sends to it with POST. Copy it into the shortcut.")
        }
    }

    private func checkHost(_ head: GuestRequestHead) throws(GuestRefusal) -> String {
        // This protects against DNS rebinding: a name of another site that resolves to this machine is refused.
        guard let host = head.host, isOwn(host) else {
            throw GuestRefusal(status: 403, message: "Open the address exactly as the other machine shows it.")
        }
        return host
    }

    private func checkSite(_ head: GuestRequestHead) throws(GuestRefusal) {
        guard head.sites.allSatisfy({ $0 == "same-origin" || $0 == "none" }) else { throw Self.otherSite }
    }

    private static let otherSite = GuestRefusal(status: 403, message: "Requests of other sites are refused.")

    /// Whether the value of `Host` is a numeric address or the mDNS name of this machine, with the peer port.
    private func isOwn(_ host: String) -> Bool {
        let suffix = ":\(port)"
        guard host.utf8.count <= 300, host.utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) else { return false }
        let name = host.utf8.dropLast(suffix.utf8.count)
        if name.first == UInt8(ascii: "["), name.last == UInt8(ascii: "]") {
            return isOwnAddress(String(decoding: name.dropFirst().dropLast(), as: UTF8.self), isIPv6: true)
        }
        let own = Array("\(hostName).local".utf8).map(ASCII.lowercased)
        if !hostName.isEmpty, name.map(ASCII.lowercased) == own { return true }
        return isOwnAddress(String(decoding: name, as: UTF8.self), isIPv6: false)
    }

    private func isOwnAddress(_ text: String, isIPv6: Bool) -> Bool {
        guard let address = IPAddress(text), address.isIPv6 == isIPv6 else { return false }
        return addresses.contains(address)
    }
}
