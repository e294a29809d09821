internal import Glibc
internal import HexlistSystem

/// Sends a request to a Unix socket, and reads the answer.
enum LocalSocket {
    struct Failure: Error { var text: String }

    private static let milliseconds: Int32 = 2_000

    /// Connects, sends the request, and waits for an answer.
    /// - Returns: the first bytes of the answer.
    static func ask(_ path: String, _ question: [UInt8]) -> Result<[UInt8], Failure> {
        let descriptor = SystemSocket.open(AF_UNIX, .stream)
        guard descriptor >= 0 else { return .failure(.last) }
        defer { close(descriptor) }
        guard SystemSocket.withUnixAddress(path, { connect(descriptor, $0, $1) }) == 0,
            send(descriptor, question, question.count, Int32(MSG_NOSIGNAL)) == question.count
        else {
            return .failure(.last)
        }
        var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&wait, 1, milliseconds) > 0 else { return .failure(Failure(text: "it does not answer")) }
        var answer = [UInt8](repeating: 0, count: 4_096)
        let count = recv(descriptor, &answer, answer.count, 0)
        return count < 0 ? .failure(.last) : .success(Array(answer.prefix(count)))
    }
}

extension LocalSocket.Failure {
    fileprivate static var last: LocalSocket.Failure { LocalSocket.Failure(text: String(cString: strerror(errno))) }
}
