// swift-tools-version: 6.1
import PackageDescription

let package = Package(
    name: "embedded-peer",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "hexlist", path: "../.."),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        .executableTarget(
            name: "embedded-peer",
            dependencies: [
                .product(name: "HexlistModel", package: "hexlist"),
                .product(name: "HexlistWire", package: "hexlist"),
                .product(name: "HexlistSession", package: "hexlist"),
                .product(name: "NIOCore", package: "swift-nio"),
            ], path: "Sources")
    ]
)
