/// Receives the events of a connection. Called on the connection's event loop, never inside a method of `PeerConnection`.
public protocol PeerConnectionDelegate: AnyObject {
    /// - Parameter frame: the body of one frame, 1 … `frameLimit` bytes.
    func received(frame: [UInt8], on connection: PeerConnection)
    /// Called when all frames that arrived together were delivered. Bytes written meanwhile are sent as one write after this returns.
    func readCompleted(on connection: PeerConnection)
    /// Called when a frame's length is outside 1 … `frameLimit`. Reading has stopped, and the connection closes as with `close()` when this
    /// returns, so a `Bye` can still be written.
    func frameFault(_ length: UInt32, on connection: PeerConnection)
    /// Called when the connection is writable again.
    func writabilityChanged(on connection: PeerConnection)
    /// Called exactly once, as the last event.
    /// - Parameter error: `nil` if either side closed in an orderly way.
    func closed(on connection: PeerConnection, error: (any Error)?)
}
