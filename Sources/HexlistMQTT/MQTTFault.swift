/// The reason why a connection to a broker ended.
package enum MQTTFault: Error, Equatable, Sendable {
    /// The broker refused the login, with the code of its CONNACK.
    case refused(UInt8)
    /// The broker refused the subscription to this machine's mailbox.
    case notSubscribed
    /// The broker sent bytes that are not a packet of MQTT 3.1.1, or a packet that the session does not permit at that moment.
    case malformed
    /// The broker did not answer in time.
    case silent
    /// The broker closed the connection.
    case closed
    /// The connection, its TLS handshake, or a file of the configuration failed.
    case failed(String)

    /// The message for the user, shown as the error of the route.
    package var text: String {
        switch self {
        case .refused(4), .refused(5): "the broker refused the login"
        case .refused(2): "the broker refused the client id"
        case .refused(let code): "the broker refused the connection with code \(code)"
        case .notSubscribed: "the broker does not let this machine read its mailbox"
        case .malformed: "it is not an MQTT 3.1.1 broker"
        case .silent: "the broker does not answer"
        case .closed: "the broker closed the connection"
        case .failed(let text): text
        }
    }
}
