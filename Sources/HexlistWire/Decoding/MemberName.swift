import HexlistJSON

/// A member of a DataSendWrapper by its name.
enum WrapperMember {
    case versionID, operationType, message, jmObjectType, jmObject, messageID, sequence
    /// Older names of `versionID` (rule T11).
    case version, versionType
    /// The links of a link package without a wrapper (rule T14). In a wrapper it is an unknown member.
    case links
    case unknown

    @inline(__always)
    init(_ name: MemberNameBytes) {
        switch name.count {
        case 5: self = name.equals("links") ? .links : .unknown
        case 7: self = name.equals("message") ? .message : name.equals("version") ? .version : .unknown
        case 8: self = name.equals("jmObject") ? .jmObject : name.equals("sequence") ? .sequence : .unknown
        case 9: self = name.equals("versionID") ? .versionID : name.equals("messageID") ? .messageID : .unknown
        case 11: self = name.equals("versionType") ? .versionType : .unknown
        case 12: self = name.equals("jmObjectType") ? .jmObjectType : .unknown
        case 13: self = name.equals("operationType") ? .operationType : .unknown
        default: self = .unknown
        }
    }
}

/// A member of a HexJM by its name.
enum HexMember {
    case senderUUID, senderName, hexDescription, hexColor, links, children
    /// Names in the local API: `description` and `color` instead of the names on the network, and `key`, which is not sent.
    case localDescription, localColor, key
    /// The `packageUUID` of a link package without a wrapper (rule T14).
    case packageUUID
    case unknown

    /// The accepted set of member names.
    enum Dialect {
        /// The names of a HexJM on the network.
        case wire
        /// The names of a HexJM, and those of the local API.
        case local
        /// A hex inside a `local` hex. It has no `key`.
        case localChild
        /// A link package as the oldest version of the app sent it (rule T14).
        case package
    }

    @inline(__always)
    init(_ name: MemberNameBytes, _ dialect: Dialect) {
        switch name.count {
        case 5 where name.equals("links"): self = .links
        case 8 where name.equals("hexColor"): self = .hexColor
        case 8 where name.equals("children"): self = .children
        case 10 where name.equals("senderName"): self = .senderName
        case 10 where name.equals("senderUUID"): self = .senderUUID
        case 14 where name.equals("hexDescription"): self = .hexDescription
        default: self = Self.other(name, dialect)
        }
    }

    private static func other(_ name: MemberNameBytes, _ dialect: Dialect) -> HexMember {
        switch dialect {
        case .wire: .unknown
        case .package: name.count == 11 && name.equals("packageUUID") ? .packageUUID : .unknown
        case .local, .localChild:
            switch name.count {
            case 3 where dialect == .local && name.equals("key"): .key
            case 5 where name.equals("color"): .localColor
            case 11 where name.equals("description"): .localDescription
            default: .unknown
            }
        }
    }
}

/// A member of a LinkJM by its name.
enum LinkMember {
    case url, linkDescription, service
    /// Older names of `linkDescription` and `service` (rule T12).
    case fileName, type
    case unknown

    @inline(__always)
    init(_ name: MemberNameBytes) {
        switch name.count {
        case 3: self = name.equals("url") ? .url : .unknown
        case 4: self = name.equals("type") ? .type : .unknown
        case 7: self = name.equals("service") ? .service : .unknown
        case 8: self = name.equals("fileName") ? .fileName : .unknown
        case 15: self = name.equals("linkDescription") ? .linkDescription : .unknown
        default: self = .unknown
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the bytes are equal to a name, ignoring the case of ASCII letters.
    func matches(_ name: String) -> Bool {
        var index = 0
        for byte in name.utf8 {
            guard index < count, Self.lower(self[index]) == Self.lower(byte) else { return false }
            index += 1
        }
        return index == count
    }

    private static func lower(_ byte: UInt8) -> UInt8 { byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte }
}
