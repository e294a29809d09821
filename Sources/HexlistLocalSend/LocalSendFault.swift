/// An invalid message of a device.
public enum LocalSendFault: Error, Equatable, Sendable {
    /// The message is not JSON of the expected form. The text says which member is wrong; it contains no text of the device.
    case invalid(String)
    /// The message exceeds a bound of `LocalSendLimits`.
    case tooLarge(String)
}
