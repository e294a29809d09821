import HexlistModel

/// The parts of the head of a plain HTTP request that `GuestGate` checks. All texts are untrusted.
struct GuestRequestHead {
    var method: String
    var path: String
    /// The `Host` field; `nil` if the request has none.
    var host: String?
    var origins: [String] = []
    /// The values of `Sec-Fetch-Site`. Browsers omit the field in requests to `http://` addresses.
    var sites: [String] = []
}

/// The reply to a refused request of a guest.
struct GuestRefusal: Error, Equatable {
    var status: Int
    var message: String

    /// The reply after the end of an invitation, and to each request while there is none.
    static let over = GuestRefusal(status: 410, message: "This invitation has ended. Ask for a new one.")
    static let notFound = GuestRefusal(status: 404, message: "Nothing exists at this address.")
}

/// Decides from the head of a plain HTTP request on the peer port whether the guest page or a shortcut may have sent it, and not another
/// site. Performs no IO.
struct GuestGate {
    /// The peer port, which is part of `Host`.
    var port: Int
    /// The addresses of this machine, without scopes.
    var addresses: [IPAddress]
    /// The name of this machine in mDNS, without `.local`; empty if it has none.
    var hostName: String

    /// - Throws: the refusal of the first rule that the request violates.
    func check(_ head: GuestRequestHead) throws(GuestRefusal) {
        let host = try checkHost(head)
        guard head.origins.allSatisfy({ PeerText.areEqual($0, "http://\(host)") }) else { throw Self.otherSite }
        try checkSite(head)
        switch head.method {
        case "GET", "HEAD": break
        case "POST", "DELETE":
            guard !head.origins.isEmpty else { throw Self.otherSite }
        default: throw GuestRefusal(status: 405, message: "This method is not supported.")
        }
    }

    /// Checks a request of a shortcut, which is no browser. Browsers add `Origin` to every `POST`, so no web site passes.
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
        // A name that another site resolves to this machine (DNS rebinding) is not among these hosts.
        guard let host = head.host, isOwn(host) else {
            throw GuestRefusal(status: 403, message: "Open the address exactly as the other machine shows it.")
        }
        return host
    }

    private func checkSite(_ head: GuestRequestHead) throws(GuestRefusal) {
        guard head.sites.allSatisfy({ $0 == "same-origin" || $0 == "none" }) else { throw Self.otherSite }
    }

    private static let otherSite = GuestRefusal(status: 403, message: "Requests of other sites are refused.")

    /// Whether `Host` has a numeric address or the name of this machine, and the peer port.
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
