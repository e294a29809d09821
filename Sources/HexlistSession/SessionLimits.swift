public import HexlistModel

/// The limits of a `SessionTable` for strangers. Most of them apply to all strangers together: limits per key would have no effect, because
/// anyone can create any number of keys.
public struct SessionLimits: Sendable, Equatable {
    /// Maximum bytes of a frame from a stranger.
    public var strangerFrameBytes = ProtocolLimits.strangerFrameBytes
    /// Maximum frames per second from one stranger.
    public var strangerFramesPerSecond = ProtocolLimits.strangerFramesPerSecond
    /// Maximum frames per second from all strangers together.
    public var allStrangersFramesPerSecond = 10 * ProtocolLimits.strangerFramesPerSecond
    /// Maximum number of sessions that strangers dialled. Each of them may have an incomplete frame in memory.
    public var strangerSessions = 64

    public init() {}
}
