internal import HexlistJSON
public import HexlistModel

/// The end of a request to a device.
public enum DeviceReply: Sendable, Equatable {
    case response(status: Int, body: [UInt8])
    /// No connection: the device is away.
    case unreachable(String)
    /// The device has another certificate than the expected one. Nothing was sent.
    case otherCertificate(Fingerprint)
    /// The device closed the connection without a response.
    case closed
    /// No response or no progress in time.
    case timeout
    /// No TLS, or no valid response.
    case invalid(String)
    /// A file of this machine cannot be read as it was offered.
    case file(String)
}

/// The response 200 to `prepare-upload`: a session, and a token for each file that the device accepts.
struct UploadSession: Sendable, Equatable {
    let id: String
    private let tokens: [String: String]

    init(parsing body: [UInt8]) throws(LocalSendFault) {
        let members = try LocalSendObject(parsing: body)
        guard let id = members["sessionId"]?.string, !id.isEmpty, id.utf8.count <= LocalSendLimits.textBytes else {
            throw .invalid("`sessionId` is missing")
        }
        self.id = id
        var tokens: [String: String] = [:]
        for member in members["files"]?.members ?? [] {
            guard let token = member.value.string, token.utf8.count <= LocalSendLimits.textBytes else { throw .invalid("`files`") }
            tokens[String(decoding: member.nameBytes, as: UTF8.self)] = token
        }
        self.tokens = tokens
    }

    func token(of file: String) -> String? { tokens[file] }
}
