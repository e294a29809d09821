public import HexlistModel

/// The limits that the sessions of a `SessionTable` have, all of them for peers that are not trusted: a key costs nothing, so a limit per
/// peer limits nobody.
public struct SessionLimits: Sendable, Equatable {
    /// The most bytes of one frame from a stranger.
    public var strangerFrameBytes = ProtocolLimits.strangerFrameBytes
    /// The frames per second at which one stranger is read.
    public var strangerFramesPerSecond = ProtocolLimits.strangerFramesPerSecond
    /// The frames per second of all strangers together.
    public var allStrangersFramesPerSecond = 10 * ProtocolLimits.strangerFramesPerSecond
    /// The most inbound sessions of strangers at once. Each may hold an incomplete frame.
    public var strangerSessions = 64

    public init() {}
}
