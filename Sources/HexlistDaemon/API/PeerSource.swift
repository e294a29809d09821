import HexlistAPI

/// The list of peers, whenever it differs from the one told before.
struct PeerSource: StreamSource {
    let keeper: NodeKeeper
    /// Away ones and ghosts too.
    let all: Bool
    private var last: [UInt8] = []
    private var lookedAt: ContinuousClock.Instant?

    init(keeper: NodeKeeper, all: Bool) {
        self.keeper = keeper
        self.all = all
    }

    /// Between two looks, however fast a network changes.
    private static let pause: Duration = .milliseconds(100)

    func page() async throws -> Page<PeerShape> {
        Page(items: try await keeper.node.peers().filter { all || $0.state == .verified }.map(PeerShape.init))
    }

    mutating func next() async throws -> (messages: [StreamMessage], hasMore: Bool) {
        if let lookedAt, ContinuousClock.now - lookedAt < Self.pause { try await Task.sleep(until: lookedAt + Self.pause) }
        let list = try await page().jsonBytes
        lookedAt = .now
        guard list != last else { return ([], false) }
        last = list
        return ([StreamMessage(event: "peers", data: String(decoding: list, as: UTF8.self))], false)
    }
}
