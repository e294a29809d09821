import Testing

@testable import HexlistSystem

/// The interface of the default route, from the kernel's routing table.
@Suite("Default route") struct DefaultRouteTests {
    private static let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    private static let subnet = "eth0\t0007A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n"

    private static func route(_ name: String, metric: String) -> String {
        "\(name)\t00000000\t0107A8C0\t0003\t0\t0\t\(metric)\t00000000\t0\t0\t0\n"
    }

    @Test(
        "the route without a destination with the lowest metric",
        arguments: [
            ("", nil), (head, nil), (head + subnet, nil), (head + route("eth0", metric: "100") + subnet, "eth0"),
            (head + route("wlan0", metric: "600") + subnet + route("eth0", metric: "100"), "eth0"),
            (head + route("eth0", metric: "x"), nil), (head + "eth0\t00000000\n", nil),
        ] as [(String, String?)])
    func interface(_ table: String, _ name: String?) { #expect(DefaultRoute.interface(in: table) == name) }
}
