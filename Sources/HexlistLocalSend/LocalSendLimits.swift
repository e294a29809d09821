/// Constants of LocalSend, and the bounds for messages of devices.
public enum LocalSendLimits {
    /// The protocol version that this program announces: that of LocalSend 1.18.
    public static let version = "2.2"
    /// The UDP port of announcements, and the TCP port on which devices listen by default.
    public static let port = 53_317
    public static let multicastGroup = "224.0.0.167"
    public static let multicastGroup6 = "ff12::fd3a:e420"
    /// The beginning of each request target.
    public static let path = "/api/localsend"

    /// Maximum bytes of a datagram, and of the body of `register` and its response.
    public static let infoBytes = 4 << 10
    /// Maximum bytes of the body of `prepare-upload`.
    public static let prepareBytes = 1 << 20
    /// Maximum number of files of a `prepare-upload`.
    public static let files = 500
    /// Maximum bytes of the text of a message (`DeviceFile.preview`).
    public static let previewBytes = 64 << 10
    /// Maximum bytes of an alias. A longer one is truncated.
    public static let aliasBytes = 256
    /// Maximum bytes of other texts that are kept, such as a device's model or the ID of a file.
    public static let textBytes = 128
    /// Maximum bytes of a file's name with its folders.
    public static let fileNameBytes = 2_048
    /// Lowest port of a device that is dialled. System ports are refused, so that no datagram makes this machine dial a system service.
    public static let lowestPort = 1_024
}
