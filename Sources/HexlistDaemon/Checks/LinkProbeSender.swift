import HexlistModel
import HexlistTransport
import NIOCore

/// Sends the requests of a check of links, under the same rules as `TitleFetcher`: to allowed addresses only, without cookies.
/// `LinkCheckRun` determines their order and stores the results.
struct LinkProbeSender: Sendable {
    /// Maximum number of requests in flight.
    static let concurrency = 4

    let client: WebClient
    /// Returns whether requests may be sent to an address.
    var isAllowed: @Sendable (IPAddress) -> Bool
    /// Maximum time of one request, not including the DNS look-up of its host.
    var time = TimeAmount.seconds(10)
    /// Time between two requests to the same host.
    var pause = Duration.milliseconds(500)
    /// Time between two reports of progress.
    var interval = Duration.seconds(1)

    /// Sends one request of a probe, and returns the response.
    func response(to probe: LinkProbe) async throws -> LinkProbeResponse {
        let addresses = try await client.addresses(of: probe.target, allowing: isAllowed)
        return try await client.send(
            probe.method, probe.target, toOneOf: addresses, until: .now() + time, reader: LinkProbeResponse())
    }
}
