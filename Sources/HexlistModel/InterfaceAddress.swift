/// An IP address of a network interface of this machine.
public struct InterfaceAddress: Hashable, Sendable {
    /// The interface's name, such as `eth0`.
    public var interface: String
    /// The interface's index, at least 1.
    public var index: Int32
    /// The address, without a scope.
    public var address: IPAddress
    /// Prefix length in bits: 0 … 32 for IPv4, 0 … 128 for IPv6.
    public var prefixLength: Int

    public init(interface: String, index: Int32, address: IPAddress, prefixLength: Int) {
        self.interface = interface
        self.index = index
        self.address = address
        self.prefixLength = prefixLength
    }
}
