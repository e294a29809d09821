/// One address of an interface of this machine.
public struct InterfaceAddress: Hashable, Sendable {
    /// `eth0`
    public var interface: String
    /// From 1 up.
    public var index: Int32
    /// Without a scope.
    public var address: IPAddress
    /// Bits: 0 … 32 for IPv4, 0 … 128 for IPv6.
    public var prefixLength: Int

    public init(interface: String, index: Int32, address: IPAddress, prefixLength: Int) {
        self.interface = interface
        self.index = index
        self.address = address
        self.prefixLength = prefixLength
    }
}
