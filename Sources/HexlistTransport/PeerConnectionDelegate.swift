/// One session's side of its connection. Called on the connection's event loop, and never out of a method of `PeerConnection`.
public protocol PeerConnectionDelegate: AnyObject {
    /// - Parameter frame: the body of one frame, 1 … `frameLimit` bytes.
    func received(frame: [UInt8], on connection: PeerConnection)
    /// The frames that came together have been delivered. What is written until here goes out as one piece.
    func readCompleted(on connection: PeerConnection)
    /// A frame announced a length outside 1 … `frameLimit`. Nothing is read any more; the connection closes, as by `close()`,
    /// once this returns, so a `Bye` may still be written.
    func frameFault(_ length: UInt32, on connection: PeerConnection)
    /// The connection can be written again, after `isWritable` was false.
    func writabilityChanged(on connection: PeerConnection)
    /// Exactly once, and the last call.
    /// - Parameter error: `nil` when either side closed in an orderly way.
    func closed(on connection: PeerConnection, error: (any Error)?)
}
