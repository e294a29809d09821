/// Receives the events of a connection, on the event loop of the connection. Never called from inside a method of `PeerConnection`.
public protocol PeerConnectionDelegate: AnyObject {
    /// Handles a received frame.
    /// - Parameter frame: the body of the frame, 1 … `frameLimit` bytes.
    func received(frame: [UInt8], on connection: PeerConnection)
    /// Called after all frames that arrived together were delivered. Bytes that the delegate has written are sent together after this call.
    func readCompleted(on connection: PeerConnection)
    /// Called if the length of a frame is not within 1 … `frameLimit`. Reading has stopped. After this call the connection is closed as by
    /// `close()`, so a `Bye` that the delegate writes is still sent.
    func frameFault(_ length: UInt32, on connection: PeerConnection)
    /// Called when `isWritable` becomes `true` again.
    func writabilityChanged(on connection: PeerConnection)
    /// Called exactly once, as the last event, after the connection was closed.
    /// - Parameter error: `nil` if one of the peers closed the connection in an orderly way.
    func closed(on connection: PeerConnection, error: (any Error)?)
}
