public import HexlistJSON
public import HexlistModel

// Literals for values of the local API, so that tests can write them as text.

extension ForwardCompatibleEnum: ExpressibleByStringLiteral {
    public init(stringLiteral text: String) { self.init(text: text) }
}

public func == (left: PeerID?, right: String) -> Bool { left?.description == right }
public func != (left: PeerID?, right: String) -> Bool { !(left == right) }
public func == (left: Fingerprint?, right: String) -> Bool { left?.description == right }
