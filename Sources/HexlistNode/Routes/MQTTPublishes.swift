import HexlistEnvelope
import HexlistModel

/// The publishes that a broker has not acknowledged. The results of one `post` are reported together.
struct MQTTPublishes {
    typealias Completion = @Sendable (PostResult, isolated Node) -> Void

    private struct Post {
        var files: [(file: EnvelopeFileName, bytes: Int)]
        var peer: PeerID
        var first: Int
        var open: Int
        var result = PostResult()
        var completion: Completion
    }

    private var posts: [Int: Post] = [:]
    private var postOfNumber: [Int: Int] = [:]
    private var next = 0

    /// Begins a post.
    /// - Returns: the number of the publish of the first file. The publishes of the other files have the next numbers.
    mutating func begin(_ files: [(file: EnvelopeFileName, bytes: Int)], to peer: PeerID, then completion: @escaping Completion) -> Int {
        let first = next
        next += files.count
        posts[first] = Post(files: files, peer: peer, first: first, open: files.count, completion: completion)
        for number in first..<next { postOfNumber[number] = first }
        return first
    }

    func recipient(of number: Int) -> PeerID? { postOfNumber[number].flatMap { posts[$0]?.peer } }

    /// Handles the acknowledgement of a publish.
    /// - Returns: a closure that reports the result of the post, if this was its last publish.
    mutating func accepted(_ number: Int) -> ((isolated Node) -> Void)? {
        answered(number) { post in post.result.posted[number - post.first] = post.files[number - post.first] }
    }

    mutating func failed(_ number: Int, _ obstacle: RouteObstacle) -> ((isolated Node) -> Void)? {
        answered(number) { $0.result.obstacle = obstacle }
    }

    private mutating func answered(_ number: Int, _ change: (inout Post) -> Void) -> ((isolated Node) -> Void)? {
        guard let first = postOfNumber.removeValue(forKey: number), var post = posts[first] else { return nil }
        change(&post)
        post.open -= 1
        guard post.open == 0 else {
            posts[first] = post
            return nil
        }
        posts[first] = nil
        return { [post] node in post.completion(post.result, node) }
    }
}
