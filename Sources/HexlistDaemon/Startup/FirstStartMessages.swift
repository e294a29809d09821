import HexlistNode
import Logging

/// Logs a message at the first start: how other machines see this one, and how to change that.
enum FirstStartMessages {
    static func log(_ status: NodeStatus, usesMulticast: Bool, configuration: String, logger: Logger) {
        let message: Logger.Message =
            switch (status.isAnnounced, usesMulticast) {
            case (true, true):
                "first start: everybody on this network can see this machine's name, UUID and port, and connect to it; `name` changes what it is called, `announce: false` hides it"
            case (true, false):
                "first start: this machine is not announced, as `domains` does not name `local`; any machine that knows its port can connect to it"
            case (false, _): "first start: this machine is hidden, as `announce: false` says; it only connects to trusted peers"
            }
        logger.notice(
            message,
            metadata: [
                "name": "\(status.name)", "peer.id": "\(status.uuid)", "port": "\(status.port)", "configuration": "\(configuration)",
            ])
    }
}
