/// Bounds of lists, which hold for every node that a peer sends (Docs/Lists.md).
public enum ListLimits {
    /// Maximum UTF-8 bytes of a URL, a title, or the value of a register.
    public static let textBytes = 64 << 10
    /// Maximum registers of a node besides place, title and private registers, and maximum UTF-8 bytes of their names. If the registers of
    /// several writers exceed the limit together, the newest ones are kept.
    public static let registers = 64
    public static let registerNameBytes = 64
    /// Maximum UTF-8 bytes of all texts of a node. Even if every byte is written as an escape of 6 bytes, they fit into
    /// `receivedPageBytes`.
    public static let nodeBytes = 256 << 10
    /// Maximum nodes of a page.
    public static let pageNodes = 2_000
    /// Maximum bytes of a page of several nodes. A page with a single node may be longer, if most of its characters are escaped.
    public static let pageBytes = 1 << 20
    /// Maximum bytes of a page that is decoded.
    public static let receivedPageBytes = 2 << 20
    /// Maximum bytes, lists, and bytes of a title in the answer to `GET /lists`. As many lists with such titles fit, even if every
    /// character is written as an escape of 6 bytes.
    public static let overviewBytes = 1 << 20
    public static let overviewLists = 512
    public static let overviewTitleBytes = 256
    /// Maximum machines of one user, besides this one.
    public static let ownMachines = 20
    /// Maximum milliseconds that a version from another person may be ahead of this machine's clock: 12 hours. Machines whose clocks differ
    /// by more do not exchange anything.
    public static let clockAhead: Int64 = 12 * 3_600_000
    /// Maximum milliseconds that a version from an own machine may be ahead: 100 years. A machine keeps the versions that it wrote while its
    /// clock was wrong, and its later versions are greater, so a machine that once was in the year 2099 needs this span. A greater version
    /// would be out of reach of all later changes.
    public static let ownClockAhead: Int64 = 100 * 366 * 24 * 3_600_000
}
