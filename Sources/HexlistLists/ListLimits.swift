/// Bounds of lists, which hold for every node that a peer sends (Docs/Lists.md).
public enum ListLimits {
    /// Maximum UTF-8 bytes of a URL, a title, or the value of a register.
    public static let textBytes = 64 << 10
    /// Maximum registers of a node besides place, title and private registers, and maximum UTF-8 bytes of their names. If the registers of
    /// several writers exceed the limit together, the newest ones are kept.
    public static let registers = 64
    /// The same maximum for the entry of a shared list, which has a register for each member and for each machine of its owner.
    public static let sharedListRegisters = 256
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
    /// Maximum bytes, lists, and bytes of a title and of an epoch in the answer to `GET /lists`. As many lists with such titles fit, even
    /// if every character of them is written as an escape of 6 bytes.
    public static let overviewBytes = 1 << 20
    public static let overviewLists = 512
    public static let overviewTitleBytes = 256
    public static let epochBytes = 64
    /// Maximum machines of one user, besides this one.
    public static let ownMachines = 20
    /// Bounds for pages of a shared list: maximum nodes after the page, deleted ones included, and maximum UTF-8 bytes of texts that pages
    /// add (64 MiB). Everyone with write access can add nodes, and each member stores them.
    public static let sharedListNodes = 100_000
    public static let sharedListTextBytes = 64 << 20
    /// Maximum members of a shared list, former ones included. Their registers fit into `sharedListRegisters` twice, because machines that
    /// were apart may have added different members.
    public static let members = 100
    /// Maximum lists of one peer that the user was offered and has neither joined nor declined. Further ones are ignored.
    public static let offersPerPeer = 20
    /// Maximum peers with which lists are exchanged at the same time. `ownMachines` of these places are kept for own machines.
    public static let exchangePeers = 512
    /// Maximum milliseconds that a version from another person may be ahead of this machine's clock: 12 hours. Machines whose clocks differ
    /// by more do not exchange anything.
    public static let clockAhead: Int64 = 12 * 3_600_000
    /// Maximum milliseconds that a version from an own machine may be ahead: 100 years. A machine keeps the versions that it wrote while its
    /// clock was wrong, and its later versions are greater, so a machine that once was in the year 2099 needs this span. A greater version
    /// would be out of reach of all later changes.
    public static let ownClockAhead: Int64 = 100 * 366 * 24 * 3_600_000
}
