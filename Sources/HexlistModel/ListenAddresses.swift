/// The addresses on which a daemon listens: the value of the setting `listen`.
package struct ListenAddresses: Sendable {
    private let addresses: [IPAddress]

    /// - Parameter texts: numeric addresses; empty for all addresses of this machine.
    package init(_ texts: [String]) { addresses = texts.compactMap { IPAddress($0)?.with(scope: 0) } }

    /// Whether the daemon listens on an address of this machine.
    package func contains(_ address: IPAddress) -> Bool {
        addresses.isEmpty || addresses.contains(where: \.isNoHost) || addresses.contains(address.with(scope: 0))
    }
}
