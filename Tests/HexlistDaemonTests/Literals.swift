public import HexlistJSON
import HexlistModel

// Values of the local API beside the texts that tests write.

extension OpenWord: ExpressibleByStringLiteral {
    public init(stringLiteral text: String) { self.init(text: text) }
}

func == (left: PeerID?, right: String) -> Bool { left?.description == right }
func != (left: PeerID?, right: String) -> Bool { !(left == right) }
func == (left: Fingerprint?, right: String) -> Bool { left?.description == right }
