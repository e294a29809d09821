import HexlistJSON
import HexlistModel

/// The output and the input of the command `hexlist frame`.
public enum FrameJSON {
    /// Describes a frame as a JSON object on one line, which is safe to display on a terminal. Unknown members are shown as received, with
    /// unsafe characters escaped (`JSONText.makePrintable`).
    public static func json(_ frame: DecodedFrame) -> [UInt8] {
        var json = JSONWriter()
        switch frame {
        case .wrapper(let wrapper): json.wrapper(wrapper)
        case .refused(let refusal):
            json.raw(#"{"ok":false,"code":"#)
            json.string(refusal.code.rawValue)
            json.raw(#","message":"#)
            json.string(refusal.message)
            json.raw("}")
        }
        return json.bytes
    }

    /// Encodes a frame, with its length, from the JSON of a wrapper. The JSON is decoded tolerantly.
    /// - Returns: the frame in canonical form: known members have their present names and forms, unknown members are unchanged.
    public static func frame(fromJSON text: [UInt8]) -> Result<[UInt8], Refusal> {
        var decoder = WrapperDecoder()
        switch decoder.decode(text) {
        case .refused(let refusal): return .failure(refusal)
        case .wrapper(let wrapper):
            let body = WrapperWriter.encode(wrapper)
            guard body.count <= ProtocolLimits.largestFrameBytes, let length = UInt32(exactly: body.count) else {
                let message = "the frame would be \(body.count) bytes long, \(ProtocolLimits.largestFrameBytes) are the most"
                return .failure(Refusal(code: .tooLarge, message: message, operation: wrapper.operation))
            }
            return .success((0..<4).map { UInt8(truncatingIfNeeded: length >> (24 - 8 * $0)) } + body)
        }
    }
}

extension JSONWriter {
    fileprivate mutating func wrapper(_ wrapper: DecodedWrapper) {
        raw(#"{"ok":true,"operation":"#)
        string(wrapper.operation.rawValue)
        raw(#","object":"#)
        if let objectType = wrapper.operation.objectType { string(objectType) } else { raw("null") }
        raw(#","versionID":"#)
        string(wrapper.versionID)
        raw(#","messageID":"#)
        if let messageID = wrapper.messageID { string(messageID.description) } else { raw("null") }
        raw(#","sequence":"#)
        if let sequence = wrapper.sequence { raw(sequence) } else { raw("null") }
        if let message = wrapper.message { member(#","message":"#) { $0.string(message) } }
        var hex: HexContent?
        switch wrapper.object {
        case .hex(let content): hex = content
        case .none, .hello, .receipt, .pairing: break
        }
        if let hex { self.hex(hex) }
        raw(#","extra":"#)
        keptMembers(ofWrapper: wrapper.extra, of: hex)
        raw(#","repairs":"#)
        array(wrapper.repairs) { json, repair in
            json.member(#"{"path":"#) { $0.string(repair.path) }
            json.member(#","rule":"#) { $0.string(repair.rule) }
            json.raw("}")
        }
        raw("}")
    }

    private mutating func hex(_ hex: HexContent) {
        raw(#","hex":"#)
        self.hex(hex.senderUUID, hex.senderName, hex.hexDescription, hex.hexColor, of: hex, nil)
    }

    /// Writes a hex with all inner hexes. Recursive, at most `ProtocolLimits.levels` deep.
    private mutating func hex(
        _ senderUUID: TextSlice, _ senderName: TextSlice, _ description: TextSlice, _ color: TextSlice, of hex: HexContent, _ child: Int?
    ) {
        member(#"{"senderUUID":"#) { $0.string(senderUUID, of: hex) }
        member(#","senderName":"#) { $0.string(senderName, of: hex) }
        member(#","hexDescription":"#) { $0.string(description, of: hex) }
        member(#","hexColor":"#) { $0.string(color, of: hex) }
        member(#","links":"#) {
            $0.array(hex.links(of: child)) { json, link in
                json.member(#"{"url":"#) { $0.string(link.url, of: hex) }
                json.member(#","linkDescription":"#) { $0.string(link.linkDescription, of: hex) }
                json.member(#","service":"#) { $0.string(link.service, of: hex) }
                json.raw("}")
            }
        }
        let children = hex.children(of: child)
        if !children.isEmpty {
            member(#","children":"#) {
                $0.array(children) { json, index in
                    let child = hex.children[index]
                    json.hex(child.senderUUID, child.senderName, child.hexDescription, child.hexColor, of: hex, index)
                }
            }
        }
        raw("}")
    }
}
