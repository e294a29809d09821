public import HexlistModel

/// The limits of a `SessionTable` for strangers. Most are shared, because a limit per key would be ineffective: anyone can create any number of
/// keys.
public struct SessionLimits: Sendable, Equatable {
    /// Maximum bytes of a frame from a stranger.
    public var strangerFrameBytes = ProtocolLimits.strangerFrameBytes
    /// Maximum frames per second from one stranger.
    public var strangerFramesPerSecond = ProtocolLimits.strangerFramesPerSecond
    /// Maximum frames per second from all strangers together.
    public var allStrangersFramesPerSecond = 10 * ProtocolLimits.strangerFramesPerSecond
    /// Maximum inbound sessions of strangers. Each may have an incomplete frame in memory.
    public var strangerSessions = 64

    public init() {}
}
