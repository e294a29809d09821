// swift-tools-version: 6.1
import PackageDescription

// Targets, lowest first: one may import only what stands above it (Docs/Architecture.md).

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
]

let package = Package(
    name: "hexlist",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "hexlistd", targets: ["hexlistd"]),
        .executable(name: "hexlist", targets: ["hexlist"]),
        .library(name: "HexlistModel", targets: ["HexlistModel"]),
        .library(name: "HexlistWire", targets: ["HexlistWire"]),
        .library(name: "HexlistDiscovery", targets: ["HexlistDiscovery"]),
        // With the connections that a session runs on, and the identity that they prove.
        .library(name: "HexlistSession", targets: ["HexlistSession", "HexlistTransport"]),
    ],
    dependencies: [
        // Ranges, so that packages that use the products can have their own; CONTRIBUTING.md, "Raising a dependency".
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    ],
    targets: [
        .target(name: "HexlistModel", swiftSettings: settings),
        .target(name: "CLinux", linkerSettings: [.linkedLibrary("resolv")]),
        .target(name: "HexlistSystem", dependencies: ["HexlistModel", "CLinux"], swiftSettings: settings),
        .target(name: "HexlistJSON", dependencies: ["HexlistModel"], swiftSettings: settings),
        .target(
            name: "HexlistFiles",
            dependencies: [
                "HexlistModel", "HexlistSystem", "HexlistJSON", "CLinux", .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ], swiftSettings: settings),
        .target(
            name: "HexlistLocalSend", dependencies: ["HexlistModel", "HexlistJSON", "HexlistFiles"], swiftSettings: settings),
        .target(name: "HexlistFormats", dependencies: ["HexlistModel", "HexlistJSON"], swiftSettings: settings),
        .target(
            name: "HexlistLists", dependencies: ["HexlistModel", "HexlistJSON", .product(name: "Crypto", package: "swift-crypto")],
            swiftSettings: settings),
        .target(
            name: "HexlistWire",
            dependencies: [
                "HexlistModel", "HexlistJSON", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "Crypto", package: "swift-crypto"),
            ], swiftSettings: settings),
        .target(
            name: "HexlistEnvelope", dependencies: ["HexlistModel", .product(name: "Crypto", package: "swift-crypto")],
            swiftSettings: settings),
        .target(
            name: "HexlistDiscovery",
            dependencies: [
                "HexlistModel", .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ], swiftSettings: settings),
        .systemLibrary(
            name: "CAvahi", pkgConfig: "avahi-client", providers: [.apt(["libavahi-client-dev"])]),
        .target(
            name: "HexlistAvahi",
            dependencies: ["HexlistModel", "HexlistDiscovery", "CAvahi", .product(name: "Logging", package: "swift-log")],
            swiftSettings: settings),
        .target(
            name: "HexlistDNS", dependencies: ["HexlistModel", "HexlistDiscovery", "HexlistSystem"], swiftSettings: settings),
        .target(name: "CSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(
            name: "HexlistStore",
            dependencies: [
                "HexlistModel", "HexlistJSON", "HexlistSystem", "HexlistLists", "CSQLite",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ], swiftSettings: settings),
        .target(
            name: "HexlistTransport",
            dependencies: [
                "HexlistModel", "HexlistWire",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ], swiftSettings: settings),
        .target(
            name: "HexlistEventLoop", dependencies: [.product(name: "NIOCore", package: "swift-nio")],
            swiftSettings: settings),
        .target(
            name: "HexlistSession",
            dependencies: [
                "HexlistModel", "HexlistWire", "HexlistTransport", "HexlistEventLoop", .product(name: "NIOCore", package: "swift-nio"),
            ], swiftSettings: settings),
        .target(
            name: "HexlistMQTT",
            dependencies: [
                "HexlistModel", "HexlistTransport", .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"), .product(name: "NIOTLS", package: "swift-nio"),
            ], swiftSettings: settings),
        .target(name: "HexlistAPI", dependencies: ["HexlistModel", "HexlistJSON"], swiftSettings: settings),
        .target(
            name: "HexlistDelivery",
            dependencies: [
                "HexlistModel", "HexlistEventLoop", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "Logging", package: "swift-log"),
            ], swiftSettings: settings),
        .target(
            name: "HexlistRclone",
            dependencies: [
                "HexlistModel", "HexlistSystem", "HexlistJSON", "HexlistFiles", "HexlistAPI",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
            ], swiftSettings: settings),
        .target(
            name: "HexlistTransfers",
            dependencies: [
                "HexlistModel", "HexlistJSON", "HexlistFiles", "HexlistLists", "HexlistWire", "HexlistStore", "HexlistTransport",
                "HexlistAPI",
                "HexlistEventLoop",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ], swiftSettings: settings),
        .target(
            name: "HexlistNode",
            dependencies: [
                "HexlistModel", "HexlistSystem", "HexlistJSON", "HexlistFiles", "HexlistLists", "HexlistWire", "HexlistEnvelope",
                "HexlistDiscovery", "HexlistStore", "HexlistTransport", "HexlistLocalSend", "HexlistFormats", "HexlistMQTT",
                "HexlistAPI", "HexlistEventLoop", "HexlistSession", "HexlistDelivery", "HexlistTransfers",
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ], swiftSettings: settings),
        // The page of `hexlist web`, in the program.
        .target(name: "HexlistPage", resources: [.embedInCode("Files"), .embedInCode("Guest")], swiftSettings: settings),
        .target(
            name: "HexlistDaemon",
            dependencies: [
                "HexlistModel", "HexlistSystem", "HexlistJSON", "HexlistFiles", "HexlistWire", "HexlistEnvelope", "HexlistDiscovery",
                "HexlistStore",
                "HexlistTransfers", "HexlistNode", "HexlistDelivery",
                "HexlistAPI",
                "HexlistRclone", "HexlistFormats", "HexlistPage",
                "HexlistAvahi",
                "HexlistDNS",
                "HexlistTransport",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "Yams", package: "Yams"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ], swiftSettings: settings),
        .target(name: "HexlistDoctor", dependencies: ["HexlistModel", "HexlistSystem", "HexlistAPI"], swiftSettings: settings),
        .target(
            name: "HexlistClient",
            dependencies: [
                "HexlistModel", "HexlistJSON", "HexlistAPI", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
            ], swiftSettings: settings),
        .executableTarget(
            name: "hexlistd",
            dependencies: [
                "HexlistDaemon", "HexlistModel", "HexlistAPI", "HexlistSystem",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "hexlist",
            dependencies: [
                "HexlistClient", "HexlistModel", "HexlistJSON", "HexlistAPI", "HexlistWire", "HexlistEnvelope", "HexlistSystem",
                "HexlistDoctor",
                "HexlistFormats",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ], swiftSettings: settings),
        // The program of Examples/embedded-peer, which has a manifest of its own. Built here too, so that a test can run it without a second
        // build of its dependencies. Without package access, as in a package of its own.
        .executableTarget(
            name: "embedded-peer",
            dependencies: [
                "HexlistModel", "HexlistWire", "HexlistTransport", "HexlistSession", .product(name: "NIOCore", package: "swift-nio"),
            ],
            path: "Examples/embedded-peer/Sources", packageAccess: false, swiftSettings: settings),
        .target(name: "HostileTexts", path: "Tests/HostileTexts", resources: [.copy("texts.json")], swiftSettings: settings),
        .target(
            name: "TestSupport",
            dependencies: ["HexlistDiscovery", "HexlistModel", "CLinux", .product(name: "DequeModule", package: "swift-collections")],
            path: "Tests/TestSupport",
            swiftSettings: settings),
        .target(
            name: "DaemonTestSupport",
            dependencies: [
                "HexlistDaemon", "HexlistClient", "HexlistAPI", "HexlistNode", "HexlistStore", "HexlistTransport", "HexlistDiscovery",
                "HexlistModel", "HexlistJSON", "TestSupport", .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ], path: "Tests/DaemonTestSupport", swiftSettings: settings),
        .testTarget(
            name: "HexlistModelTests", dependencies: ["HexlistModel", "HexlistJSON", "HostileTexts", "TestSupport"], swiftSettings: settings
        ),
        .testTarget(name: "HexlistJSONTests", dependencies: ["HexlistJSON"], swiftSettings: settings),
        .testTarget(
            name: "HexlistSystemTests", dependencies: ["HexlistSystem", "HexlistModel", "CLinux", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "HexlistFilesTests",
            dependencies: [
                "HexlistFiles", "HexlistModel", "HexlistSystem", "HostileTexts", "TestSupport",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "HexlistRcloneTests",
            dependencies: [
                "HexlistRclone", "HexlistAPI", "HexlistFiles", "HexlistJSON", "HexlistModel", "HexlistSystem", "TestSupport",
                .product(name: "NIOPosix", package: "swift-nio"),
            ], swiftSettings: settings),
        .testTarget(
            name: "HexlistLocalSendTests", dependencies: ["HexlistLocalSend", "HexlistModel", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "HexlistListsTests",
            dependencies: [
                "HexlistLists", "HexlistJSON", "HexlistModel", "TestSupport", .product(name: "Crypto", package: "swift-crypto"),
            ], swiftSettings: settings),
        .testTarget(
            name: "HexlistWireTests",
            dependencies: [
                "HexlistWire", "HexlistJSON", "HexlistModel", "HostileTexts", "TestSupport",
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            resources: [.copy("Vectors")], swiftSettings: settings),
        .testTarget(
            name: "HexlistEnvelopeTests",
            dependencies: [
                "HexlistEnvelope", "HexlistModel", "TestSupport", .product(name: "Crypto", package: "swift-crypto"),
            ], resources: [.copy("Vectors")], swiftSettings: settings),
        .testTarget(
            name: "HexlistDiscoveryTests", dependencies: ["HexlistDiscovery", "HexlistModel", "HostileTexts", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "HexlistDNSTests", dependencies: ["HexlistDNS", "HexlistDiscovery", "HexlistModel"], swiftSettings: settings),
        .testTarget(
            name: "HexlistAvahiTests", dependencies: ["HexlistAvahi", "HexlistDiscovery", "HexlistModel", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "HexlistStoreTests",
            dependencies: [
                "HexlistStore", "HexlistLists", "HexlistJSON", "HexlistModel", "CSQLite", "TestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            resources: [.copy("Fixtures")], swiftSettings: settings),
        .testTarget(
            name: "HexlistTransportTests",
            dependencies: [
                "HexlistTransport", "HexlistWire", "HexlistModel", "TestSupport", .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"), .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ], swiftSettings: settings),
        .testTarget(
            name: "HexlistMQTTTests",
            dependencies: [
                "HexlistMQTT", "HexlistModel", "HexlistTransport", "TestSupport",
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
            ], swiftSettings: settings),
        .testTarget(
            name: "HexlistDeliveryTests",
            dependencies: [
                "HexlistDelivery", "HexlistEventLoop", "HexlistModel", "TestSupport", .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
            ], swiftSettings: settings),
        .testTarget(
            name: "HexlistSessionTests",
            dependencies: [
                "HexlistSession", "HexlistTransport", "HexlistWire", "HexlistModel", "TestSupport",
                .product(name: "NIOCore", package: "swift-nio"),
            ], swiftSettings: settings),
        .testTarget(
            name: "HexlistTransfersTests",
            dependencies: [
                "HexlistTransfers", "HexlistAPI", "HexlistEventLoop", "HexlistFiles", "HexlistModel", "HexlistStore", "HexlistTransport",
                "HexlistWire", "TestSupport", .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"), .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ], swiftSettings: settings),
        .testTarget(
            name: "HexlistNodeTests",
            dependencies: [
                "HexlistDelivery", "HexlistNode", "HexlistTransfers", "HexlistAPI", "HexlistEnvelope", "HexlistEventLoop", "HexlistFiles",
                "HexlistJSON", "HexlistLists", "HexlistLocalSend", "HexlistSession", "HexlistMQTT", "HexlistStore", "HexlistTransport",
                "HexlistWire",
                "HexlistDiscovery",
                "HexlistModel",
                "TestSupport",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ], swiftSettings: settings),
        .testTarget(
            name: "HexlistAPITests",
            dependencies: [
                "HexlistAPI", "HexlistDaemon", "HexlistClient", "HexlistNode", "HexlistPage", "HexlistStore", "HexlistWire",
                "HexlistEnvelope", "HexlistModel",
                "HexlistJSON", "DaemonTestSupport", "TestSupport", .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOPosix", package: "swift-nio"), .product(name: "Yams", package: "Yams"),
            ], swiftSettings: settings),
        .testTarget(
            name: "HexlistClientTests",
            dependencies: [
                "HexlistClient", "HexlistDaemon", "HexlistAPI", "HexlistWire", "HexlistModel", "HexlistJSON", "HostileTexts",
                "DaemonTestSupport", "TestSupport", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
            ], swiftSettings: settings),
        .testTarget(
            name: "HexlistDaemonTests",
            dependencies: [
                "HexlistDaemon", "HexlistClient", "HexlistAPI", "HexlistNode", "HexlistStore", "HexlistTransport", "HexlistDiscovery",
                "HexlistDNS", "HexlistMQTT", "HexlistModel", "HexlistJSON", "HexlistFiles", "HexlistSystem", "HostileTexts",
                "DaemonTestSupport",
                "TestSupport",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"), .product(name: "Logging", package: "swift-log"),
                .product(name: "Yams", package: "Yams"), .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ], swiftSettings: settings),
        .testTarget(
            name: "HexlistFormatsTests", dependencies: ["HexlistFormats", "HexlistJSON", "HexlistModel", "TestSupport"],
            resources: [.copy("Fixtures")], swiftSettings: settings),
        .testTarget(name: "HexlistDoctorTests", dependencies: ["HexlistDoctor", "HexlistAPI"], swiftSettings: settings),
        .testTarget(
            name: "HexlistCommandTests",
            dependencies: [
                "hexlist", "HexlistAPI", "HexlistEnvelope", "HexlistJSON", "HexlistModel", "HexlistSystem",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "IntegrationTests", dependencies: ["HexlistModel", "HexlistWire", "TestSupport", "embedded-peer"], swiftSettings: settings
        ),
    ]
)
if let only = Context.environment["ONLY_TESTS"] {
    let kept = only.split(separator: ",").map(String.init)
    package.targets.removeAll {
        $0.type == .test && !kept.contains($0.name) || ["DaemonTestSupport", "HexlistDaemon", "hexlist", "hexlistd"].contains($0.name)
    }
    package.products.removeAll { $0.name == "hexlist" || $0.name == "hexlistd" }
}
