/// The tree of a list's hexes, derived from their places and deletion marks: which hexes are deleted, which hex contains each, and which
/// are shown. It depends on the rows alone, so replicas with the same rows show the same tree.
///
/// - A hex whose deletion mark names another hex is deleted if that hex is deleted or unknown. Hexes whose marks form a cycle are deleted.
/// - In a cycle of parents, the newest move is ignored: its hex is in its previous parent if that leads to the root, and otherwise in the
///   root.
/// - A hex below level 8 is in the hex that contains its parent. A hex whose parent is unknown is in the root.
/// - A deleted hex is shown if it contains a shown node.
///
/// The tree is derived without recursion, in time linear in the number of hexes for any places and marks.
public struct ListStructure: Sendable {
    /// Maximum levels that are shown in My Hexlist. A hex in the root is at level 1.
    public static let levels = 8
    /// Maximum levels that are shown in a shared list, whose root is a hex at level 1 of My Hexlist.
    public static let sharedLevels = 7

    /// A hex with the values from which the tree is derived.
    public struct Hex: Sendable {
        public let id: ListNode.ID
        public let place: ListNode.Place?
        public let deletion: DeletionMark?
        public let isMarkedDeleted: Bool
        /// The number of shown leaves in the hex itself.
        public var leaves: Int

        /// - Parameter node: a node of kind `hex`.
        public init(_ node: ListNode, leaves: Int) {
            id = node.id
            place = node.place
            deletion = node.deletion
            isMarkedDeleted = node.isMarkedDeleted
            self.leaves = leaves
        }
    }

    public let root: ListNode.ID
    private let levels: Int
    public private(set) var hexes: [Hex]
    /// Number of loop iterations, for the test that the time is linear.
    private(set) var steps = 0

    private var indices: [ListNode.ID: Int] = [:]
    /// For each hex, the index of the parent that its place names, and of the hex that contains it in the derived tree; `nil` for the root.
    private var parents: [Int?] = []
    private var containers: [Int?] = []
    private var isDeleted: [Bool] = []
    private var isShown: [Bool] = []
    private var isMoveIgnored: [Bool] = []

    /// - Parameters:
    ///   - root: the list's id.
    ///   - hexes: all hexes of the list, each once. The root is ignored.
    ///   - levels: maximum levels that are shown.
    public init(root: ListNode.ID, hexes: [Hex], levels: Int = levels) {
        self.root = root
        self.levels = levels
        self.hexes = hexes.filter { $0.id != root }
        for (index, hex) in self.hexes.enumerated() { indices[hex.id] = index }
        deriveDeletions()
        evaluate()
    }

    /// Derives the tree again after a change of the number of leaves.
    /// - Parameter changes: the change of `Hex.leaves` by hex. Unknown hexes are ignored.
    public mutating func addLeaves(_ changes: [ListNode.ID: Int]) {
        for (hex, change) in changes { if let index = indices[hex] { hexes[index].leaves += change } }
        evaluate()
    }

    /// Whether a hex is known and not deleted. A node whose deletion mark names a hex is revived while this hex is alive.
    public func isAlive(_ hex: ListNode.ID) -> Bool { indices[hex].map { !isDeleted[$0] } ?? false }

    public func contains(_ hex: ListNode.ID) -> Bool { indices[hex] != nil }

    /// The derived state of the hex at an index of `hexes`.
    public func state(at index: Int) -> ListRow.State { !isDeleted[index] ? .present : isShown[index] ? .retained : .deleted }

    /// The hex that contains the hex at an index of `hexes`; the list's id for the root.
    public func container(at index: Int) -> ListNode.ID { containers[index].map { hexes[$0].id } ?? root }

    /// The hexes that are not deleted and whose last move is ignored because of a cycle, with the hex that contains them.
    public var ignoredMoves: [(hex: ListNode.ID, container: ListNode.ID)] {
        hexes.indices.filter { isMoveIgnored[$0] && !isDeleted[$0] }.map { (hexes[$0].id, container(at: $0)) }
    }

    // MARK: - Derivation

    private mutating func evaluate() {
        findParents()
        openCycles()
        let order = limitLevels()
        showContainers(order)
    }

    /// Derives which hexes are deleted, by following the hexes that the marks name.
    private mutating func deriveDeletions() {
        isDeleted = Array(repeating: false, count: hexes.count)
        var isKnown = Array(repeating: false, count: hexes.count)
        var isOnPath = Array(repeating: false, count: hexes.count)
        for start in hexes.indices where !isKnown[start] {
            var path: [Int] = []
            var next: Int? = start
            var result = true  // for an unknown hex, and for a cycle
            while let index = next, !isOnPath[index] {
                steps += 1
                if isKnown[index] {
                    result = isDeleted[index]
                    break
                }
                isOnPath[index] = true
                path.append(index)
                guard hexes[index].isMarkedDeleted else {
                    result = false
                    break
                }
                next = hexes[index].deletion?.with.flatMap { indices[$0] }
            }
            for index in path {
                isDeleted[index] = result
                (isKnown[index], isOnPath[index]) = (true, false)
            }
        }
    }

    private mutating func findParents() {
        parents = hexes.map { hex in hex.place.flatMap { indices[$0.parent] } }
        containers = parents
        isMoveIgnored = Array(repeating: false, count: hexes.count)
    }

    /// Ignores the newest move of each cycle.
    private mutating func openCycles() {
        var leadsToRoot: [Bool?] = Array(repeating: nil, count: hexes.count)
        var walk = Array(repeating: -1, count: hexes.count)
        var ignored: [Int] = []
        for start in hexes.indices where leadsToRoot[start] == nil {
            var path: [Int] = []
            var next: Int? = start
            var result = true
            while let index = next {
                steps += 1
                if let known = leadsToRoot[index] {
                    result = known
                    break
                }
                guard walk[index] != start else {  // a cycle that begins here
                    result = false
                    ignored.append(newestMove(inCycleOf: index))
                    break
                }
                walk[index] = start
                path.append(index)
                next = parents[index]
            }
            for index in path { leadsToRoot[index] = result }
        }
        for index in ignored {
            isMoveIgnored[index] = true
            let previous = hexes[index].place.flatMap { indices[$0.previousParent] }
            containers[index] = previous.flatMap { leadsToRoot[$0] == true ? $0 : nil }
        }
    }

    private mutating func newestMove(inCycleOf start: Int) -> Int {
        func isNewer(_ left: Int, _ right: Int) -> Bool {
            guard let leftPlace = hexes[left].place, let rightPlace = hexes[right].place, leftPlace.version != rightPlace.version else {
                return hexes[left].id > hexes[right].id
            }
            return leftPlace.version > rightPlace.version
        }
        var newest = start
        var next = parents[start]
        while let index = next, index != start {
            steps += 1
            if isNewer(index, newest) { newest = index }
            next = parents[index]
        }
        return newest
    }

    /// Moves hexes that are too deep.
    /// - Returns: the indices of all hexes, each after the hex that contains it.
    private mutating func limitLevels() -> [Int] {
        var contents: [[Int]] = Array(repeating: [], count: hexes.count)
        var order: [Int] = []
        var level = Array(repeating: 1, count: hexes.count)
        for index in hexes.indices {
            if let container = containers[index] { contents[container].append(index) } else { order.append(index) }
        }
        var position = 0
        while position < order.count {
            let outer = order[position]
            for index in contents[outer] {
                steps += 1
                level[index] = min(level[outer] + 1, levels)
                if level[outer] == levels { containers[index] = containers[outer] }
                order.append(index)
            }
            position += 1
        }
        return order
    }

    private mutating func showContainers(_ order: [Int]) {
        isShown = hexes.indices.map { !isDeleted[$0] || hexes[$0].leaves > 0 }
        for index in order.reversed() {
            steps += 1
            if isShown[index], let container = containers[index] { isShown[container] = true }
        }
    }
}
