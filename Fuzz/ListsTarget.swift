// libFuzzer target: pages, overviews and requests of lists from a member with a modified program. Must never trap. Accepted values are
// within their bounds and unchanged by encoding and decoding. Nodes merge in any order, and the tree derived from them has no cycle and at
// most 8 levels.

private let present: Int64 = 1_800_000_000_000

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLists(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    switch input.byte() % 6 {
    case 0: readPage(input.all(), from: .ownMachine)
    case 1: readPage(input.all(), from: .otherPerson)
    case 2: chooseKeys(&input)
    case 3: readOverview(input.all())
    case 4: readTarget(input.all())
    default: readPage(page(rows: input.all()), from: .otherPerson)
    }
    return 0
}

/// A page with the input as its rows.
private func page(rows: [UInt8]) -> [UInt8] {
    Array(#"{"list":"018BCFE5-6800-8100-8000-000000000001","replica":"00000000000000aa","after":0,"through":9,"last":true,"#.utf8)
        + Array(#""by":["00000000000000aa","00000000000000bb"],"rows":["#.utf8) + rows + Array("]}".utf8)
}

private func readPage(_ bytes: [UInt8], from peer: ListPage.Peer) {
    guard let page = try? ListPage(decoding: bytes, from: peer, now: present) else { return }
    guard page.nodes.count + page.skipped <= ListLimits.pageNodes else { fatalError("too many nodes") }
    var encoder = ListPageEncoder(list: page.list, receiver: peer)
    for node in page.nodes {
        check(node, from: peer)
        guard encoder.append(node) else { fatalError("a node of a page does not fit into a page") }
    }
    let encoded = encoder.encoded(replica: page.replica, after: page.after, through: page.through, isLast: page.isLast)
    guard let again = try? ListPage(decoding: encoded, from: peer, now: present), again.nodes == page.nodes, again.skipped == 0 else {
        fatalError("another page after encoding")
    }
    derive(page)
}

private func readOverview(_ bytes: [UInt8]) {
    guard let overview = try? ListOverview(decoding: bytes) else { return }
    guard overview.lists.count + overview.skipped <= ListLimits.overviewLists else { fatalError("too many lists") }
    let encoded = overview.json
    guard encoded.count <= ListLimits.overviewBytes else { fatalError("an overview over its bound") }
    guard let again = try? ListOverview(decoding: encoded), again.lists == overview.lists, again.now == overview.now,
        again.isOwnMachine == overview.isOwnMachine, again.skipped == 0
    else { fatalError("another overview after encoding") }
}

private func readTarget(_ bytes: [UInt8]) {
    guard let target = ListRequestTarget(bytes) else { return }
    guard target.description.utf8.count <= ListRequestTarget.maximumBytes, ListRequestTarget(target.description) == target else {
        fatalError("another target after printing")
    }
}

private func check(_ node: ListNode, from peer: ListPage.Peer) {
    let latest = peer == .ownMachine ? HybridClock.maximumTime : HybridClock.time(milliseconds: present + ListLimits.clockAhead) | 0xFFFF
    guard node.latestTime <= latest, node.textBytes <= ListLimits.nodeBytes, node.registers.count <= ListLimits.registers,
        node.place.map({ 1...OrderKey.maximumBytes ~= $0.key.bytes.count }) ?? true, node.version != nil || node.deletion != nil
    else { fatalError("a node over its bounds") }
    if peer == .otherPerson, node.id.kind == .sharedList || node.registers["read"] != nil { fatalError("a value for own machines only") }
    var clock = HybridClock()
    clock.observe(node.latestTime)
    guard clock.next(now: present) > node.latestTime else { fatalError("a clock that stands still") }
}

/// Merges the nodes in two orders and derives the tree.
private func derive(_ page: ListPage) {
    var (forwards, backwards): ([ListNode.ID: ListNode], [ListNode.ID: ListNode]) = ([:], [:])
    for node in page.nodes where !node.isPurged { forwards[node.id, default: ListNode(id: node.id)].merge(node) }
    for node in page.nodes.reversed() where !node.isPurged { backwards[node.id, default: ListNode(id: node.id)].merge(node) }
    guard forwards == backwards else { fatalError("the order of merging matters") }
    let hexes = forwards.values.filter { $0.id.kind == .hex }.map { ListStructure.Hex($0, leaves: 1) }
    let structure = ListStructure(root: page.list, hexes: hexes)
    let indices = Dictionary(uniqueKeysWithValues: structure.hexes.enumerated().map { ($1.id, $0) })
    for index in structure.hexes.indices {
        var (level, container) = (1, structure.container(at: index))
        while container != page.list {
            guard level < ListStructure.levels, let outer = indices[container] else { fatalError("a cycle, or too many levels") }
            (level, container) = (level + 1, structure.container(at: outer))
        }
        guard structure.state(at: index) != .deleted else { fatalError("a hex with a leaf is not shown") }
    }
}

private func chooseKeys(_ input: inout FuzzInput) {
    var generator = InputGenerator(seed: UInt64(input.word()))
    let (low, high) = (OrderKey(bytes: input.bytes()), OrderKey(bytes: input.bytes()))
    if let key = OrderKey.between(low, high, isNearHigh: input.flag(), using: &generator) {
        guard low < key, key < high, key.bytes.count <= OrderKey.maximumBytes else { fatalError("a key that is not between") }
        if let run = key.run(count: 300), !zip(run, run.dropFirst()).allSatisfy({ $0 < $1 }) { fatalError("a run that is not in order") }
    }
    let number = Int64(input.word()) << 40 | Int64(input.word())
    if let key = OrderKey.after(low, number: number, using: &generator), key <= low { fatalError("a key that is not after") }
    if let key = OrderKey.before(low, number: number, using: &generator), key >= low { fatalError("a key that is not before") }
}

/// The SplitMix64 generator, seeded with the input.
private struct InputGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
