import Glibc
import Testing

@testable import HexlistSystem

@Suite("The process that listens on a port") struct PortListenerTests {
    private static let table = """
          sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
           0: 0100007F:5F47 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41 1 0 100 0 0 10 0
           1: 0100007F:1F90 0100007F:5F48 01 00000000:00000000 00:00000000 00000000  1001        0 42 1 0 20 4 0 10 -1
           2: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1002        0 43 1 0 100 0 0 10 0
        """

    @Test(
        "is found by its socket in the table of the kernel",
        arguments: [(24_391, 1_000, 41), (8_080, 1_002, 43), (24_392, nil, nil)] as [(Int, UInt32?, UInt64?)])
    func table(port: Int, user: UInt32?, inode: UInt64?) {
        let found = PortListener.socket(listeningOn: port, in: Self.table)
        #expect(found?.user == user && found?.inode == inode)
        #expect(PortListener.socket(listeningOn: port, in: "header\n 0: x y 0A") == nil)
    }

    @Test("is this process for a socket of its own") func own() throws {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> Int in
                guard bind(descriptor, address, size) == 0, listen(descriptor, 1) == 0, getsockname(descriptor, address, &size) == 0 else {
                    return 0
                }
                return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { Int(UInt16(bigEndian: $0.pointee.sin_port)) }
            }
        }
        let listener = try #require(PortListener.find(port: port))
        #expect(listener.process?.id == getpid() && listener.user == geteuid())
        #expect(listener.description.hasSuffix("(pid \(getpid()))"))
        let hidden = PortListener(user: 0, hiddenDaemon: 7)
        #expect(hidden.description == "a program of user root, probably hexlistd (pid 7)")
    }
}
