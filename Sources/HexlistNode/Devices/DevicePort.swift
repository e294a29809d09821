import HexlistLocalSend
import HexlistModel
import HexlistSystem
import HexlistTransport
import Logging

/// The TCP port on which LocalSend devices connect, and the reason for its choice.
struct DevicePort {
    var number: Int
    /// The reason as a sentence for `status` and `doctor`; `nil` if LocalSend's default port 53317 was chosen without a setting.
    var reason: String?

    /// Listens on the configured port. Without one, listens on 53317, which phones try if the network filters multicast. If 53317 is in
    /// use, or a LocalSend app is installed, which could not start later without that port, listens on the port of the last start or on one
    /// that the system chooses.
    /// - Throws: `HexlistError` `portInUse` if no port could be bound.
    static func listen(_ settings: NodeConfiguration.LocalSend, _ node: isolated Node) async throws -> DevicePort {
        if let port = settings.port {
            return DevicePort(number: try await bind(port, node), reason: "localsend.port is \(port).")
        }
        let usual = LocalSendLimits.port
        var reason: String
        if let program = settings.installedProgram {
            reason = "\(usual) is left to \(program), which is installed here."
        } else {
            do {
                return DevicePort(number: try await bind(usual, node), reason: nil)
            } catch let error as HexlistError where error.code == .portInUse {
                reason = "\(usual) is used by another program."
            }
        }
        let remembered = try await node.store.read { try $0.meta(key).flatMap { Int($0) } }
        if let remembered, remembered != usual, let port = try? await bind(remembered, node) {
            return DevicePort(number: port, reason: reason)
        }
        let port = try await bind(0, node)
        do {
            try await node.store.setMeta([key: "\(port)"])
        } catch {
            node.logger.warning("the port for LocalSend cannot be stored for the next start", metadata: ["error": "\(error)"])
        }
        return DevicePort(number: port, reason: reason)
    }

    private static let key = "localsendPort"

    private static func bind(_ port: Int, _ node: isolated Node) async throws -> Int {
        try await node.transport.listenForDevices(
            addresses: node.configuration.listen, port: UInt16(clamping: port),
            received: { [weak node] exchange in node?.assumeIsolated { $0.devices.requests.received(exchange, $0) } },
            refused: { [weak node] address in node?.assumeIsolated { $0.devices.handshakeFailed(of: address, $0) } })
    }
}
