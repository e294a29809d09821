// swift-tools-version: 6.1
import PackageDescription

// Measures; kept apart so that the project's own build knows nothing of it. Run `Benchmarks/decode`.

let package = Package(
    name: "hexlist-benchmarks",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "decode-bench", targets: ["DecodeBench"])],
    dependencies: [.package(name: "hexlist", path: "..")],
    targets: [
        .executableTarget(
            name: "DecodeBench",
            dependencies: [.product(name: "HexlistModel", package: "hexlist"), .product(name: "HexlistWire", package: "hexlist")])
    ]
)
