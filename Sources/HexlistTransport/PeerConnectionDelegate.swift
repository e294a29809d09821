/// The receiver of one connection's events. Called on the connection's event loop, never from inside a method of `PeerConnection`.
public protocol PeerConnectionDelegate: AnyObject {
    /// - Parameter frame: the body of one frame, 1 … `frameLimit` bytes.
    func received(frame: [UInt8], on connection: PeerConnection)
    /// All frames that came together have been delivered. What the delegate wrote meanwhile is sent as one piece after this returns.
    func readCompleted(on connection: PeerConnection)
    /// A frame announced a length outside 1 … `frameLimit`. Reading has ended; the connection closes, as with `close()`, once this returns,
    /// so a `Bye` may still be written.
    func frameFault(_ length: UInt32, on connection: PeerConnection)
    /// The connection can be written again, after `isWritable` was false.
    func writabilityChanged(on connection: PeerConnection)
    /// The connection is closed. Called exactly once, as the last call.
    /// - Parameter error: `nil` if either side closed in an orderly way.
    func closed(on connection: PeerConnection, error: (any Error)?)
}
