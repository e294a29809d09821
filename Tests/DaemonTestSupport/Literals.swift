public import HexlistJSON
public import HexlistModel

// Values of the local API beside the texts that tests write.

extension ForwardCompatibleEnum: ExpressibleByStringLiteral {
    public init(stringLiteral text: String) { self.init(text: text) }
}

public func == (left: PeerID?, right: String) -> Bool { left?.description == right }
public func != (left: PeerID?, right: String) -> Bool { !(left == right) }
public func == (left: Fingerprint?, right: String) -> Bool { left?.description == right }
